/** Restores exports that the server's file has lost: what PersistentVolumes name is the truth, and the file a copy of it. */
import type { Logger, PersistentVolume, Recorder } from '../../src/index.ts';
import type { Exports } from './exports.ts';
import type { LostExport } from './exports-file.ts';
import type { Identity } from './identity-file.ts';
import type { OwnVolumes } from './own-volumes.ts';
import { PendingNames } from './pending-names.ts';
import { recordedExport } from './recorded-export.ts';
import type { VolumeDirectories } from './volume-directory.ts';
import { identityOf } from './volume-object.ts';
import { VolumeProblems } from './volume-problems.ts';

export interface LostExportsOptions {
  volumes: Pick<OwnVolumes, 'get' | 'names' | 'other' | 'otherNames' | 'reserveIds' | 'run' | 'synced'>;
  identity: Pick<Identity, 'id' | 'file'>;
  exports: Pick<Exports, 'isServed' | 'restore'>;
  directories: VolumeDirectories;
  recorder: Recorder;
  /** Whether the server responds. While it starts, nothing is restored and nothing reported; `lookAtAll` is called afterwards. */
  isServing: () => boolean;
  /** @throws while the export directory does not respond. */
  checkDisk: () => void;
  logger: Logger;
  /** Pause until what could not be restored is tried again, in milliseconds. Default 60,000. */
  retryMs?: number;
}

/** A server with thousands of exports needs a while for each. */
const restoreTimeoutMs = 600_000;

/** How many removed directories are remembered: the PersistentVolumes of older ones are gone, too. */
const maxLeaving = 10_000;

export class LostExports {
  readonly #options: LostExportsOptions;
  /** Volumes to check. The file is written once for all that change together. */
  readonly #pending: PendingNames;
  /** Why volumes are not exported. */
  readonly #problems: VolumeProblems;
  /** Volumes whose data is here, and which name another identity. */
  readonly #strange: VolumeProblems;
  /** Directories that are being removed, or have been. */
  readonly #leaving = new Set<string>();
  readonly #restored = Promise.withResolvers<undefined>();

  constructor(options: LostExportsOptions) {
    this.#options = options;
    this.#pending = new PendingNames(options);
    this.#problems = new VolumeProblems({ ...options, reason: 'NotExported', text: 'The volume is not exported' });
    this.#strange = new VolumeProblems({
      ...options,
      reason: 'OtherIdentity',
      text: 'The volume is neither deleted nor restored',
    });
  }

  /** PersistentVolumes of this provisioner that are not exported. */
  get count(): number {
    return this.#problems.count;
  }

  /** The volume is new, has changed or is gone. */
  changed(name: string): void {
    this.#pending.add(name);
  }

  /** The directory is about to be removed: it is not exported again, though its PersistentVolume may be there for a while. */
  leaving(directory: string): void {
    const [oldest] = this.#leaving;
    if (oldest !== undefined && this.#leaving.size >= maxLeaving) this.#leaving.delete(oldest);
    this.#leaving.add(directory);
  }

  /** The directory is about to be created for a volume. */
  coming(directory: string): void {
    this.#leaving.delete(directory);
  }

  /** Whether the directory is being removed, or has been. */
  isLeaving(directory: string): boolean {
    return this.#leaving.has(directory);
  }

  /** The server has been restarted, or the file has been read: all volumes are checked. */
  lookAtAll(): void {
    const { volumes } = this.#options;
    this.#pending.add(...volumes.names, ...volumes.otherNames);
  }

  /** Resolves once all volumes were checked for the first time. @throws when that takes too long. */
  async whenRestored(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const late = Promise.withResolvers<never>();
    const end = (): void =>
      late.reject(
        new Error('lost exports of PersistentVolumes, which are restored first, have not all been checked yet'),
      );
    signal.addEventListener('abort', end, { once: true });
    try {
      await Promise.race([this.#restored.promise, late.promise]);
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** Works until the signal aborts; resolves then. To be called once. */
  async run(stop: AbortSignal): Promise<void> {
    const { volumes } = this.#options;
    const following = volumes.run(stop);
    await Promise.race([volumes.synced, following]);
    while (!stop.aborted) {
      this.#pending.begin();
      if (this.#options.isServing()) {
        await this.#checkQuietly(stop);
        this.#restored.resolve(undefined);
      }
      await this.#pending.wait(stop);
    }
    await following;
  }

  async #checkQuietly(stop: AbortSignal): Promise<void> {
    const names = new Set([...this.#pending.take(), ...this.#problems.names, ...this.#strange.names]);
    try {
      await this.#check(names, stop);
    } catch (err) {
      this.#pending.putBack(names);
      if (!stop.aborted) this.#options.logger.error({ err }, 'The check for lost exports failed, and will be retried');
    }
  }

  async #check(names: ReadonlySet<string>, stop: AbortSignal): Promise<void> {
    const { volumes, exports, checkDisk, logger } = this.#options;
    checkDisk();
    await this.#checkIdentities(names);
    const lost = new Map<PersistentVolume, LostExport>();
    for (const name of names) {
      const volume = volumes.get(name);
      if (volume === undefined) this.#problems.forget(name);
      const found = volume && (await this.#lost(volume));
      if (volume !== undefined && found !== undefined) lost.set(volume, found);
    }
    if (lost.size === 0) return;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(restoreTimeoutMs)]);
    const failures = await exports.restore([...lost.values()], (directory) => !this.#leaving.has(directory), signal);
    for (const [volume, { path }] of lost) this.#problems.report(volume, failures.get(path)?.message);
    const restored = lost.size - failures.size;
    if (restored > 0)
      logger.warn({ exports: restored }, 'Exports that were lost have been restored from PersistentVolumes');
  }

  /** Volumes of another identity whose data is here: that of this export directory has been lost, and nobody deletes them. */
  async #checkIdentities(names: ReadonlySet<string>): Promise<void> {
    const { volumes, directories, identity, logger } = this.#options;
    const found = new Map<string, string[]>();
    for (const name of names) {
      const volume = volumes.other(name);
      const directory = volume?.spec.nfs?.path ?? '';
      if (volume === undefined || !(await directories.isDirectory(directory))) {
        this.#strange.forget(name);
        continue;
      }
      volumes.reserveIds(name);
      const other = identityOf(volume) ?? '';
      const problem =
        `its data is in ${directory}, but it names the identity ${other}, and this provisioner has ${identity.id}; ` +
        `write ${other} into ${identity.file} and restart nfs-provisioner, or, if volumes have the new identity already, ` +
        `set the annotation Provisioner_Id of this volume to ${identity.id}`;
      if (this.#strange.report(volume, problem)) found.set(other, [...(found.get(other) ?? []), name]);
    }
    for (const [other, [volume, ...more]] of found)
      logger.warn(
        { file: identity.file, identity: identity.id, lost: other, volumes: 1 + more.length, volume },
        'PersistentVolumes with data in the export directory name another identity; write that into the identity file and restart',
      );
  }

  /** What is to be restored for the volume; undefined when there is nothing to do, or nothing can be done. */
  async #lost(volume: PersistentVolume): Promise<LostExport | undefined> {
    const { exports, directories } = this.#options;
    const found = recordedExport(volume, directories);
    if ('problem' in found) {
      this.#problems.report(volume, found.problem);
      return undefined;
    }
    if (this.#leaving.has(found.path)) return undefined;
    if (!(await directories.isDirectory(found.path))) {
      const isHalfDeleted = volume.status?.phase === 'Released' || volume.status?.phase === 'Failed';
      this.#problems.report(volume, isHalfDeleted ? undefined : `${found.path} is not a directory, or is gone`);
      return undefined;
    }
    if (!exports.isServed(found.path)) return found;
    this.#problems.report(volume, undefined);
    return undefined;
  }
}
