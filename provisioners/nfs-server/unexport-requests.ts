/** How the audit requests the removal of an export from the running provisioner, the only one that changes exports: by a file in the export directory. */
import { once } from 'node:events';
import { link, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errnoOf, type Logger } from '../../src/index.ts';
import type { Exports } from './exports.ts';
import type { OwnVolumes } from './own-volumes.ts';
import type { SeenExport } from './seen-exports.ts';
import type { VolumeDirectories } from './volume-directory.ts';

/** Only root can write there: clients mount the directories of volumes. */
const fileName = '.nfs-provisioner.unexport';
const pollMs = 1000;
/** How long ganesha may take, in milliseconds. */
const removeTimeoutMs = 60_000;
/** How long the provisioner may take to find a request, which it does every second, and to carry it out, in milliseconds. */
const responseTimeoutMs = 90_000;

/**
 * Asks the running provisioner to remove an export, and waits until it has done so or refused to.
 *
 * @throws when another request is there, and when no provisioner handles this one within 90 s; then it is withdrawn.
 */
export async function requestUnexport(
  root: string,
  { id, path: directory }: SeenExport,
  signal: AbortSignal,
): Promise<void> {
  const file = path.join(root, fileName);
  const late = AbortSignal.any([signal, AbortSignal.timeout(responseTimeoutMs)]);
  await createWhole(file, JSON.stringify({ id, path: directory })).catch((error: unknown) => {
    if (errnoOf(error) !== 'EEXIST') throw error;
    throw new Error(`${file} exists: another audit is running; remove the file if that is not so`, { cause: error });
  });
  while ((await textOf(file)) !== undefined) {
    await delay(pollMs / 4, undefined, { signal: late }).catch(() => undefined);
    if (!late.aborted) continue;
    await rm(file, { force: true });
    throw new Error('no running provisioner has removed the export: it has to use the same export directory');
  }
}

export interface UnexportRequestsOptions {
  directories: Pick<VolumeDirectories, 'isVolume' | 'root'>;
  exports: Pick<Exports, 'find' | 'remove'>;
  volumes: Pick<OwnVolumes, 'names' | 'get' | 'synced'>;
  /** Whether the export directory responds. */
  isDiskUp: () => boolean;
  onRemoved: () => void;
  logger: Logger;
}

/** Carries out the requests of audits. */
export class UnexportRequests {
  readonly #options: UnexportRequestsOptions;

  constructor(options: UnexportRequestsOptions) {
    this.#options = options;
  }

  /** Works until the signal aborts; resolves then. */
  async run(stop: AbortSignal): Promise<void> {
    const { volumes, logger } = this.#options;
    if (!stop.aborted) await Promise.race([volumes.synced, once(stop, 'abort')]);
    while (!stop.aborted) {
      await this.#serve(stop).catch((err: unknown) => {
        logger.warn({ err }, 'The request of an audit to remove an export was not carried out');
      });
      await delay(pollMs, undefined, { signal: stop }).catch(() => undefined);
    }
  }

  async #serve(stop: AbortSignal): Promise<void> {
    const { directories, exports, isDiskUp, onRemoved, logger } = this.#options;
    if (!isDiskUp()) return;
    const file = path.join(directories.root, fileName);
    const text = await textOf(file);
    if (text === undefined) return;
    try {
      const ageMs = Date.now() - (await stat(file)).mtimeMs;
      if (ageMs > responseTimeoutMs)
        throw new Error(`the request is ${Math.round(ageMs / 1000)} s old: its audit no longer waits for it`);
      const { id, path: directory } = readRequest(text);
      const why = this.#obstacle({ id, path: directory });
      if (why !== undefined) throw new Error(why);
      await exports.remove(directory, AbortSignal.any([stop, AbortSignal.timeout(removeTimeoutMs)]));
      onRemoved();
      logger.warn({ directory, exportId: id }, 'An export was removed at the request of an audit');
    } finally {
      await rm(file, { force: true }); // the audit reads the exports to see the result
    }
  }

  /** The audit has checked all PersistentVolumes; this checks those whose export would be restored immediately. */
  #obstacle({ id, path: directory }: SeenExport): string | undefined {
    const { directories, exports, volumes } = this.#options;
    if (!directories.isVolume(directory)) return `${directory} is not the directory of a volume`;
    const found = exports.find(directory);
    if (found !== undefined && found.id !== id) return `${directory} is exported with the id ${found.id}, not ${id}`;
    for (const name of volumes.names) {
      if (volumes.get(name)?.spec.nfs?.path === directory) return `PersistentVolume ${name} has ${directory}`;
    }
    return undefined;
  }
}

/** Creates a file atomically, with its content. @throws `EEXIST` when it exists. */
async function createWhole(file: string, text: string): Promise<void> {
  const written = `${file}.${process.pid}`;
  try {
    await writeFile(written, text, { mode: 0o600 });
    await link(written, file);
  } finally {
    await rm(written, { force: true });
  }
}

/** @throws for an invalid request. */
function readRequest(text: string): SeenExport {
  const { id, path: directory } = JSON.parse(text) as Partial<Record<keyof SeenExport, unknown>>;
  if (typeof id !== 'number' || typeof directory !== 'string') throw new Error('the request does not name an export');
  return { id, path: directory };
}

/** The content of a file; undefined if it does not exist. */
async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
