/** The text of ganesha's configuration: what we write, and what we read of it. It may be one that the original left. */
import { readBlocks } from './ganesha-blocks.ts';

/** How ganesha treats root of a client. */
export type Squash = 'no_root_squash' | 'root_id_squash';

/** One export, as it stands in a file. */
export interface ExportEntry {
  readonly id: number;
  /** The directory. */
  readonly path: string;
  readonly squash: Squash;
  /** What it is in the file, with the line breaks around it. */
  readonly text: string;
}

/**
 * The text of one export, as the original writes it, line breaks around it included. The same number is the id of the
 * export and that of the file system in file handles.
 */
export function exportBlock({ id, path, squash }: Omit<ExportEntry, 'text'>): string {
  const lines = [
    ...[`Export_Id = ${id};`, `Path = ${path};`, `Pseudo = ${path};`, 'Access_Type = RW;', `Squash = ${squash};`],
    ...['SecType = sys;', `Filesystem_id = ${id}.${id};`, 'FSAL {', '\tName = VFS;', '}'],
  ];
  return `\nEXPORT\n{\n${lines.map((line) => `\t${line}\n`).join('')}}\n`;
}

/** The configuration of a first start. */
export function defaultConfig({ recoveryRoot, nfsV3 }: { recoveryRoot: string; nfsV3: boolean }): string {
  const pseudoRoot = [
    ...['Export_Id = 0;', 'Path = /;', 'Pseudo = /;', 'Protocols = 4;', 'Access_Type = MDONLY_RO;'],
    ...['Filesystem_Id = 152.152;', 'FSAL {', '\tName = PSEUDO;', '}'],
  ];
  const withoutRpcbind = ['Protocols = 4;', 'Enable_UDP = false;', 'Enable_NLM = false;', 'Enable_RQUOTA = false;'];
  const core = ['MNT_Port = 20048;', 'NLM_Port = 32803;', 'fsid_device = true;', ...(nfsV3 ? [] : withoutRpcbind)];
  const block = (name: string, lines: string[]): string =>
    `${name}\n{\n${lines.map((line) => `\t${line}\n`).join('')}}\n`;
  return [
    block('EXPORT', pseudoRoot),
    block('NFS_Core_Param', core),
    block('NFSV4', ['Grace_Period = 90;', `RecoveryRoot = ${recoveryRoot};`]),
  ].join('\n');
}

/** The configuration with these settings in it, and otherwise unchanged. */
export function withServerSettings(
  config: string,
  { gracePeriodS, deviceBasedFsids }: { gracePeriodS: number; deviceBasedFsids: boolean },
): string {
  const grace = `Grace_Period = ${gracePeriodS};`;
  const fsids = `fsid_device = ${deviceBasedFsids};`;
  const mountPort = 'MNT_Port = 20048;';
  const insert = (text: string, line: string): string => text.replace(mountPort, `${mountPort}\n\t${line}`);
  let text = config;
  if (!/\bNLM_Port = \d+;/.test(text)) text = insert(text, 'NLM_Port = 32803;');
  const fsidLine = /\bfsid_device = (?:true|false);/;
  text = fsidLine.test(text) ? text.replace(fsidLine, fsids) : insert(text, fsids);
  const graceLine = /\bGrace_Period = \d+;/;
  return graceLine.test(text) ? text.replace(graceLine, grace) : `${text}\nNFSV4\n{\n\t${grace}\n}\n`;
}

/** All exports, in the order of the text. */
export function exportsIn(config: string): ExportEntry[] {
  const entries: ExportEntry[] = [];
  for (const { name, body, start, end } of readBlocks(config).blocks) {
    if (name.toLowerCase() !== 'export') continue;
    const id = /(?:^|[\s;{])Export_Id\s*=\s*(\d+)\s*;/i.exec(body)?.[1];
    const path = /(?:^|[\s;{])Path\s*=\s*"?([^;"]*?)"?\s*;/i.exec(body)?.[1];
    if (id === undefined || path === undefined) continue;
    const squash = /(?:^|[\s;{])Squash\s*=\s*root_id_squash\s*;/i.test(body) ? 'root_id_squash' : 'no_root_squash';
    const isAfterBlank = config[start - 1] === '\n' && (start === 1 || config[start - 2] === '\n'); // else it is the end of another line
    const from = isAfterBlank ? start - 1 : start;
    const to = config[end] === '\n' ? end + 1 : end;
    entries.push({ id: Number(id), path, squash, text: config.slice(from, to) });
  }
  return entries;
}

/** Whether the configuration is complete, so that ganesha can read it. */
export function isWhole(config: string): boolean {
  const { blocks, damaged } = readBlocks(config);
  return blocks.length > 0 && damaged.length === 0;
}

/**
 * The blocks of a configuration that are whole. Ganesha could not read one that is damaged, such as one that was being written when
 * the machine went down: it would start with its defaults and serve nothing, on all addresses. A required block that is not whole
 * is replaced by that of a first start.
 *
 * @returns undefined when all of it is well-formed; the configuration of a first start when nothing of it is.
 */
export function repaired(config: string, defaults: Parameters<typeof defaultConfig>[0]): string | undefined {
  const { blocks, damaged } = readBlocks(config);
  const fresh = defaultConfig(defaults);
  if (blocks.length === 0) return fresh;
  if (damaged.length === 0) return undefined;
  const edges = [0, ...damaged.flatMap(({ start, end }) => [start, end]), config.length];
  const pieces = edges
    .filter((_edge, index) => index % 2 === 0)
    .map((from, index) => config.slice(from, edges[2 * index + 1]));
  const has = (wanted: string): boolean => blocks.some(({ name }) => name.toUpperCase() === wanted.toUpperCase());
  const isRootLost = damaged.some(({ start, end }) => /\bExport_Id\s*=\s*0\s*;/i.test(config.slice(start, end)));
  const missing = readBlocks(fresh).blocks.filter(({ name }) => (name === 'EXPORT' ? isRootLost : !has(name)));
  return [...pieces, ...missing.map(({ start, end }) => `\n${fresh.slice(start, end)}\n`)].join('');
}
