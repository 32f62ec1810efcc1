/** Whether what is mounted is the share that the volumes are on. An empty or another export proves nothing about any of them. */
import {
  type Clock,
  errnoOf,
  KeyedLocks,
  type LockNotes,
  type Logger,
  NotDirectoryError,
  type OpenedDirectory,
} from '../../src/index.ts';
import { identityFile, readIdentity, removeLeftOver, writeIdentity } from './share-identity.ts';
import type { VolumePath } from './volume-path.ts';

/** The export cannot be used now: nothing is created or deleted, and nothing is concluded from what it lacks. */
export class ShareError extends Error {
  override readonly name: string = 'ShareError';
}

/** On the lock: the identity of the share that was seen last, or `new`, by which an operator accepts what is mounted. */
export const shareKey = 'nfs-subdir-external-provisioner/share-identity';
const acceptedByOperator = 'new';
/** Pause until an export that was refused is checked with the API again, in milliseconds. */
const refusedMs = 5000;

export interface ShareGuardOptions {
  mountPoint: string;
  /** Where the identity is remembered. Undefined without a lock: then this process alone remembers it. */
  notes: Pick<LockNotes, 'read' | 'write' | 'object'> | undefined;
  /** The volumes of this provisioner. */
  ownVolumes: () => Iterable<{ path: VolumePath }>;
  /** Resolves once they are complete. */
  synced: Promise<void>;
  clock: Clock;
  logger: Logger;
}

export class ShareGuard {
  readonly #options: ShareGuardOptions;
  /** One attempt at a time: each writes a file of its own first, and a process that is killed would leave those of the later ones. */
  readonly #settling = new KeyedLocks();
  #accepted: string | undefined;
  /** The root of a share that was accepted although no file can be created there. */
  #unwritable: string | undefined;
  #refusal: { seen: string | undefined; untilMs: number; error: ShareError } | undefined;

  constructor(options: ShareGuardOptions) {
    this.#options = options;
  }

  /**
   * Checks the opened root of what is mounted, directly before work below it. Writes an identity if there is none and this
   * is certainly the share of the volumes.
   *
   * @throws {ShareError} for an export that must not be used; the error of a request or of the file system, when that is not known.
   */
  async check(root: OpenedDirectory, signal: AbortSignal): Promise<void> {
    if (await this.#isKnown(root, await readIdentity(root))) return;
    await this.#settling.run(identityFile, () => this.#settleUnlessKnown(root, signal), { signal });
  }

  async #settleUnlessKnown(root: OpenedDirectory, signal: AbortSignal): Promise<void> {
    const seen = await readIdentity(root);
    if (await this.#isKnown(root, seen)) return;
    const { clock } = this.#options;
    const refusal = this.#refusal;
    if (refusal?.seen === seen && refusal !== undefined && clock.monotonicMs() < refusal.untilMs) throw refusal.error;
    try {
      await this.#settle(root, seen, signal);
      this.#refusal = undefined;
    } catch (error) {
      if (error instanceof ShareError) this.#refusal = { seen, untilMs: clock.monotonicMs() + refusedMs, error };
      throw error;
    }
  }

  async #isKnown(root: OpenedDirectory, seen: string | undefined): Promise<boolean> {
    if (seen !== undefined) return seen === this.#accepted;
    return this.#unwritable !== undefined && this.#unwritable === (await placeOf(root));
  }

  async #settle(root: OpenedDirectory, seen: string | undefined, signal: AbortSignal): Promise<void> {
    await this.#options.synced;
    const remembered = await this.#remembered(signal);
    if (!remembered.includes(acceptedByOperator) && !(seen !== undefined && remembered.includes(seen))) {
      if (remembered.length > 0) throw this.#isAnother(seen, remembered);
      if (!(await this.#isPlausible(root, seen))) throw this.#lacksAll();
    }
    await this.#accept(root, seen, signal);
  }

  async #remembered(signal: AbortSignal): Promise<string[]> {
    const { notes } = this.#options;
    if (notes !== undefined) return await notes.read(shareKey, signal);
    return this.#accepted === undefined ? [] : [this.#accepted];
  }

  /** For a share that was never seen: whether a volume's directory is there, or there are no volumes. */
  async #isPlausible(root: OpenedDirectory, seen: string | undefined): Promise<boolean> {
    const { ownVolumes, notes } = this.#options;
    if (seen !== undefined && notes === undefined) return true; // nothing but the file remembers
    let isEmpty = true;
    for (const { path } of ownVolumes()) {
      isEmpty = false;
      if (await hasDirectory(root, path)) return true;
    }
    return isEmpty;
  }

  async #accept(root: OpenedDirectory, seen: string | undefined, signal: AbortSignal): Promise<void> {
    const { logger, mountPoint, notes } = this.#options;
    if (seen !== undefined) await removeLeftOver(root);
    const identity = seen ?? (await this.#written(root));
    if (identity === undefined) return;
    this.#accepted = identity;
    logger.info({ identity, mountPoint, isNew: seen === undefined }, 'The share is accepted by its identity');
    await notes?.write(shareKey, identity, signal);
  }

  /** Undefined if no file can be created in the root: its volumes lie in directories below it. */
  async #written(root: OpenedDirectory): Promise<string | undefined> {
    try {
      return await writeIdentity(root);
    } catch (error) {
      if (!['EACCES', 'EPERM', 'EROFS'].includes(errnoOf(error) ?? '')) throw error;
      this.#unwritable = await placeOf(root);
      const text = `No file ${identityFile} can be created in the root of the export, by which it would be recognised after a restart`;
      this.#options.logger.warn({ err: error }, text);
      return undefined;
    }
  }

  #isAnother(seen: string | undefined, remembered: readonly string[]): ShareError {
    const { mountPoint } = this.#options;
    const found =
      seen === undefined
        ? `the export at ${mountPoint} has no file ${identityFile}: it is empty, not mounted, or another one`
        : `the export at ${mountPoint} is another one: its identity is ${seen}`;
    return new ShareError(`${found}; the share of the volumes is ${remembered.join(', ')}. ${this.#wayOut}`);
  }

  #lacksAll(): ShareError {
    const { mountPoint } = this.#options;
    return new ShareError(
      `the export at ${mountPoint} has none of the directories of this provisioner's volumes: it is empty, not mounted, or another one. ${this.#wayOut}`,
    );
  }

  get #wayOut(): string {
    const { notes } = this.#options;
    const accept =
      notes === undefined
        ? `put a UUID into ${identityFile} in its root and restart the provisioner`
        : `kubectl annotate --overwrite ${notes.object} ${shareKey}=${acceptedByOperator}`;
    return `Nothing is created or deleted. Mount the right share; or, to use the mounted one from now on: ${accept}`;
  }
}

async function hasDirectory(root: OpenedDirectory, path: VolumePath): Promise<boolean> {
  try {
    await using _directory = await root.walk(path);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || error instanceof NotDirectoryError) return false;
    throw error;
  }
}

/** The same as long as the same file system is mounted. */
async function placeOf(root: OpenedDirectory): Promise<string> {
  const { dev, ino } = await root.stat();
  return `${dev}:${ino}`;
}
