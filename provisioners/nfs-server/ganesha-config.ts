/** The text of ganesha's configuration: what we write, and what we read of it. It may be one that the original left. */

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

interface Block {
  readonly name: string;
  readonly body: string;
  readonly start: number;
  readonly end: number;
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

/** Exports by directory; of several for one directory the first, as ganesha does. */
export function exportsIn(config: string): ExportEntry[] {
  const entries: ExportEntry[] = [];
  for (const { name, body, start, end } of blocksOf(config).blocks) {
    if (name.toLowerCase() !== 'export') continue;
    const id = /(?:^|[\s;{])Export_Id\s*=\s*(\d+)\s*;/i.exec(body)?.[1];
    const path = /(?:^|[\s;{])Path\s*=\s*"?([^;"]*?)"?\s*;/i.exec(body)?.[1];
    if (id === undefined || path === undefined) continue;
    const squash = /(?:^|[\s;{])Squash\s*=\s*root_id_squash\s*;/i.test(body) ? 'root_id_squash' : 'no_root_squash';
    const from = config[start - 1] === '\n' ? start - 1 : start;
    const to = config[end] === '\n' ? end + 1 : end;
    entries.push({ id: Number(id), path, squash, text: config.slice(from, to) });
  }
  return entries;
}

/**
 * Splits a configuration that ganesha could not read, such as one that was being written when the machine went down: it
 * would start with its defaults and serve nothing, on all addresses.
 *
 * @returns the text up to the last block that is whole, and what follows; undefined when all of it is well-formed.
 */
export function splitDamaged(config: string): { whole: string; rest: string } | undefined {
  const { damagedFrom } = blocksOf(config);
  if (damagedFrom === undefined) return undefined;
  return { whole: config.slice(0, damagedFrom), rest: config.slice(damagedFrom) };
}

/** The blocks at the top level, without comments in their bodies. */
function blocksOf(config: string): { blocks: Block[]; damagedFrom: number | undefined } {
  const blocks: Block[] = [];
  let depth = 0;
  let [nameStart, lastEnd] = [-1, 0];
  let [name, body] = ['', ''];
  // a comment or a directive to the end of the line, a quoted text, a brace, or a run of anything else
  for (const { 0: token, index } of config.matchAll(/[#%][^\n]*|"[^"\n]*"|'[^'\n]*'|[{}]|\s+|[^\s#%"'{}]+|["']/g)) {
    if (/^[\s#%]/.test(token)) {
      if (depth > 0) body += ' ';
      if (depth === 0 && nameStart === -1) lastEnd = index + token.length;
    } else if (token === '{') {
      if (depth === 0) [name, body] = [config.slice(nameStart, index).trim(), ''];
      else body += token;
      depth += 1;
    } else if (token === '}') {
      depth -= 1;
      if (depth < 0) break;
      if (depth > 0) body += token;
      else {
        lastEnd = index + 1;
        blocks.push({ name, body, start: nameStart, end: lastEnd });
        nameStart = -1;
      }
    } else if (token === '"' || token === "'") break;
    else if (depth > 0) body += token;
    else if (nameStart === -1) nameStart = index;
  }
  const isWhole = depth === 0 && nameStart === -1 && lastEnd === config.length;
  return { blocks, damagedFrom: isWhole ? undefined : lastEnd };
}
