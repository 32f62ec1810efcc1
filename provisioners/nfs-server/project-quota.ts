/** Limits of size by XFS project quota (xfs_quota(8)): a volume cannot grow beyond what its claim asked for. */
import { readFile, stat } from 'node:fs/promises';
import { type Clock, errnoOf, KeyedLocks, type Logger, systemClock } from '../../src/index.ts';
import type { AtomicFile } from './atomic-file.ts';
import { IdPool } from './export-ids.ts';
import { isUnwritable } from './exports-file.ts';
import { UsageError } from './flags.ts';
import { largestProjectId, type LostQuota } from './recorded-quota.ts';
import { xfsQuota } from './xfs-quota.ts';

/** `project -s` visits every file of the volume. */
const maxVisitMs = 30 * 60_000;
/** For any other command. */
const maxCommandMs = 60_000;
/** Volumes whose quota is set at the same time at a start: they share one disk. */
const maxConcurrent = 4;

/** The quota of one volume: as it stands in the file, and on the PersistentVolume. */
export interface Project {
  readonly id: number;
  /** The line, with the line breaks around it. */
  readonly block: string;
}

interface ProjectLine extends Project {
  readonly directory: string;
  readonly bytes: bigint;
}

export interface ProjectQuotaOptions {
  /** The export directory, which is the mount point. */
  mountPoint: string;
  file: AtomicFile;
  /** Whether a PersistentVolume has the id, although its line may be lost: no other volume gets it. Default: none has it. */
  isTaken?: (id: number) => boolean;
  logger: Logger;
  /** Default: the machine's. */
  clock?: Clock;
}

/** Project ids of all volumes, in a file of lines `<id>:<directory>:<bytes>`. */
export class ProjectQuota {
  readonly #options: ProjectQuotaOptions;
  readonly #ids: IdPool;
  readonly #lines = new Map<string, ProjectLine>();
  readonly #lock = new KeyedLocks();

  private constructor(options: ProjectQuotaOptions) {
    this.#options = options;
    const { isTaken } = options;
    this.#ids = new IdPool({ max: largestProjectId, ...(isTaken && { isReserved: isTaken }) });
  }

  /**
   * Sets the quota of every volume again, unless the disk is read-only: XFS keeps what was set. Lines of directories that are gone go.
   *
   * @param mountInfo - default `/proc/self/mountinfo`.
   * @throws {UsageError} where the file system has no project quota, or `xfs_quota` is missing, with the way out; {Error} when a
   * quota cannot be set, or not within half an hour for each volume.
   */
  static async open(options: ProjectQuotaOptions, mountInfo = '/proc/self/mountinfo'): Promise<ProjectQuota> {
    await checkFileSystem(options.mountPoint, mountInfo);
    const quota = new ProjectQuota(options);
    await quota.#checkProgram();
    await quota.#restore();
    return quota;
  }

  /** Limits a directory. Repeated for one directory it takes the id that it has. */
  set(directory: string, bytes: bigint, signal?: AbortSignal): Promise<Project> {
    const section = async (): Promise<Project> => {
      const old = this.#lines.get(directory);
      const id = old?.id ?? this.#ids.take();
      if (id === undefined) throw new Error('all project ids are in use');
      const line = lineOf({ id, directory, bytes });
      await this.#add(line, { mustBeSaved: true, signal });
      return { id, block: line.block };
    };
    return this.#lock.run('projects', section, { ...(signal && { signal }) });
  }

  /** Whether the directory has a quota. */
  has(directory: string): boolean {
    return this.#lines.has(directory);
  }

  /**
   * Restores a quota that is missing in the file, with its id. Safe to repeat.
   *
   * @param isWanted - called directly before: a volume may be deleted meanwhile.
   * @returns whether it was set; not if the directory has a quota, or is not wanted.
   * @throws when another directory has the id, and when the quota cannot be set.
   */
  restore({ id, directory, bytes }: LostQuota, isWanted: () => boolean, signal: AbortSignal): Promise<boolean> {
    const section = async (): Promise<boolean> => {
      if (this.has(directory) || !isWanted()) return false;
      const owner = [...this.#lines.values()].find((line) => line.id === id);
      if (owner !== undefined) {
        throw new Error(`the project id ${id} is already used by ${owner.directory}`);
      }
      await this.#add(lineOf({ id, directory, bytes }), { mustBeSaved: false, signal });
      return true;
    };
    return this.#lock.run('projects', section, { signal });
  }

  /** The directory is gone. Safe to repeat. A full disk does not prevent it: the line goes with the next change, or at the next start. */
  remove(directory: string): Promise<void> {
    return this.#lock.run('projects', async () => {
      const line = this.#lines.get(directory);
      if (line !== undefined) await this.#forget(line);
    });
  }

  /** Sets the quota; a new one that cannot be set is removed again. */
  async #add(
    line: ProjectLine,
    { mustBeSaved, signal }: { mustBeSaved: boolean; signal: AbortSignal | undefined },
  ): Promise<void> {
    const isNew = !this.has(line.directory);
    try {
      this.#lines.set(line.directory, line);
      this.#ids.keep(line.id);
      await this.#write({ mustBeSaved });
      await this.#limit(line, signal);
    } catch (error) {
      if (isNew) await this.#forget(line);
      throw error;
    }
  }

  async #forget({ directory, id }: ProjectLine): Promise<void> {
    this.#lines.delete(directory);
    await this.#write({ mustBeSaved: false });
    this.#ids.release(id);
  }

  async #restore(): Promise<void> {
    const text = (await this.#options.file.read()) ?? '';
    for (const [, id = '', directory = '', bytes = ''] of text.matchAll(/^(\d+):(.+):(\d+)$/gm)) {
      if (!(await isDirectory(directory))) continue;
      const line = lineOf({ id: Number(id), directory, bytes: BigInt(bytes) });
      this.#lines.set(directory, line);
      this.#ids.keep(line.id);
    }
    if ((await this.#write({ mustBeSaved: false })) !== 'EROFS') await this.#limitAll();
  }

  /** The first failure ends all. */
  async #limitAll(): Promise<void> {
    const volumes = this.#lines.size;
    if (volumes > 0) this.#options.logger.info({ volumes }, 'Setting the quotas of all volumes again');
    const rest = this.#lines.values(); // what one worker takes, the others do not see
    const failure = new AbortController();
    const work = async (): Promise<void> => {
      for (const line of rest) {
        if (failure.signal.aborted) return;
        await this.#limit(line, failure.signal);
      }
    };
    const workers = Array.from({ length: maxConcurrent }, work);
    try {
      await Promise.all(workers);
    } catch (error) {
      failure.abort(error);
      throw error;
    }
  }

  /**
   * @param options.mustBeSaved - whether a disk that is full or read-only is an error; else the lines are in memory alone.
   * @returns the code of the error that prevented it.
   */
  async #write({ mustBeSaved }: { mustBeSaved: boolean }): Promise<string | undefined> {
    const { file, logger } = this.#options;
    try {
      await file.write([...this.#lines.values()].map(({ block }) => block).join(''));
      return undefined;
    } catch (err) {
      if (mustBeSaved || !isUnwritable(err)) throw err;
      logger.warn({ file: file.path, err }, 'The projects file could not be written; this is tried again');
      return errnoOf(err);
    }
  }

  async #limit({ id, directory, bytes }: ProjectLine, signal: AbortSignal | undefined): Promise<void> {
    const { mountPoint } = this.#options;
    const run = (command: string, maxMs: number): Promise<void> =>
      this.#xfsQuota(['-x', '-c', command, mountPoint], maxMs, signal);
    await run(`project -s -p ${directory} ${id}`, maxVisitMs);
    await run(`limit -p bhard=${bytes} ${id}`, maxCommandMs);
  }

  /** @throws {UsageError} */
  async #checkProgram(): Promise<void> {
    try {
      await this.#xfsQuota(['-V'], maxCommandMs);
    } catch (error) {
      const why = (error as Error).message;
      throw new UsageError(`-enable-xfs-quota: xfs_quota cannot be run; install xfsprogs (${why})`, { cause: error });
    }
  }

  #xfsQuota(args: readonly string[], maxMs: number, signal?: AbortSignal): Promise<void> {
    const { logger, clock = systemClock } = this.#options;
    return xfsQuota(args, { maxMs, clock, logger, signal });
  }
}

function lineOf({ id, directory, bytes }: LostQuota): ProjectLine {
  return { id, directory, bytes, block: `\n${id}:${directory}:${bytes}\n` };
}

async function isDirectory(directory: string): Promise<boolean> {
  try {
    return (await stat(directory)).isDirectory();
  } catch {
    return false;
  }
}

/** @throws {UsageError} */
async function checkFileSystem(mountPoint: string, mountInfo: string): Promise<void> {
  const cure = 'mount XFS there with the option prjquota, or omit -enable-xfs-quota';
  const lines = (await readFile(mountInfo, 'utf8')).split('\n').map((line) => line.split(' '));
  const mount = lines.findLast((fields) => fields[4] === mountPoint); // the last one lies on top
  if (mount === undefined) throw new UsageError(`-enable-xfs-quota: ${mountPoint} is not a mount point; ${cure}`);
  const type = mount[mount.indexOf('-') + 1] ?? '';
  if (type !== 'xfs') throw new UsageError(`-enable-xfs-quota: ${mountPoint} is ${type}, not xfs; ${cure}`);
  const options = (mount.at(-1) ?? '').split(',');
  if (!options.some((option) => option === 'pquota' || option === 'prjquota')) {
    throw new UsageError(`-enable-xfs-quota: ${mountPoint} is mounted without project quota; ${cure}`);
  }
}
