/** What is exported, for those who only read: nothing is written, repaired or removed. */
import { AtomicFile } from './atomic-file.ts';
import { GaneshaBus } from './ganesha-bus.ts';
import { readBlocks } from './ganesha-blocks.ts';
import { type ExportEntry, exportsIn } from './ganesha-config.ts';
import { kernelFormat } from './kernel-exports.ts';
import type { Settings } from './settings.ts';
import { volumeNamesIn } from './volume-directory.ts';

export type SeenExport = Pick<ExportEntry, 'id' | 'path'>;

export interface SeenExports {
  /** The file of the server. */
  readonly file: string;
  readonly entries: readonly SeenExport[];
  /** Volumes that the file names, be it in a comment, or that the server exports. */
  readonly names: ReadonlySet<string>;
  /** Why there may be more. */
  readonly unknown: readonly string[];
}

/** Reads the file of the server, and asks ganesha. Never rejects because of ganesha. */
export async function seenExports(settings: Settings, signal: AbortSignal): Promise<SeenExports> {
  const { mode, paths, exportSubnet } = settings;
  const file = mode === 'kernel' ? paths.kernelExports : paths.config;
  const text = await new AtomicFile(file).read();
  const missing = text === undefined ? [`the exports: ${file} does not exist. ${sameFlags}`] : [];
  const config = text ?? '';
  if (mode === 'kernel') {
    const entries = kernelFormat(exportSubnet).read(config);
    return { file, entries, names: new Set(volumeNamesIn(config)), unknown: missing };
  }
  const damaged = readBlocks(config).damaged.length > 0 ? [`the exports: ${file} is damaged`] : [];
  const { active, silent } = await activeExports(settings, signal);
  const written = exportsIn(config);
  const unwritten = active.filter(({ id, path }) => !written.some((each) => each.id === id && each.path === path));
  const names = volumeNamesIn([config, ...active.map(({ path }) => path)].join('\n'));
  return {
    file,
    entries: [...written, ...unwritten],
    names: new Set(names),
    unknown: [...missing, ...damaged, ...silent],
  };
}

const sameFlags = 'Run the audit in the Pod of the provisioner, with its flags before "audit"';

async function activeExports(
  { paths }: Settings,
  signal: AbortSignal,
): Promise<{ active: SeenExport[]; silent: string[] }> {
  try {
    const active = await new GaneshaBus(paths.busSocket).showExports(signal);
    return { active: [...active].map(([id, path]) => ({ id, path })), silent: [] };
  } catch (error) {
    signal.throwIfAborted();
    const { message } = error as Error;
    return { active: [], silent: [`what ganesha exports: it does not respond (${message}). ${sameFlags}`] };
  }
}
