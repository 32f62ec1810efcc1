/** Restores quotas that are missing in the projects file: without them volumes could grow without limit, and their ids be reused. */
import { once } from 'node:events';
import type { Logger, PersistentVolume, Recorder } from '../../src/index.ts';
import type { OwnVolumes } from './own-volumes.ts';
import { PendingNames } from './pending-names.ts';
import type { ProjectQuota } from './project-quota.ts';
import { recordedQuota } from './recorded-quota.ts';
import type { VolumeDirectories } from './volume-directory.ts';
import { VolumeProblems } from './volume-problems.ts';

export interface LostQuotasOptions {
  /** Its watch is run by the owner. */
  volumes: Pick<OwnVolumes, 'get' | 'synced'>;
  quota: Pick<ProjectQuota, 'has' | 'restore'>;
  directories: VolumeDirectories;
  /** Whether the directory is about to be removed, or has been. */
  isLeaving: (directory: string) => boolean;
  recorder: Recorder;
  /** @throws while the export directory does not respond. */
  checkDisk: () => void;
  logger: Logger;
  /** Pause until what could not be set is tried again, in milliseconds. Default 60,000. */
  retryMs?: number;
}

/** Runs in parallel to the restoration of exports, which does not wait for it: `xfs_quota` visits every file of a volume. */
export class LostQuotas {
  readonly #options: LostQuotasOptions;
  readonly #pending: PendingNames;
  /** Why quotas are not set. */
  readonly #problems: VolumeProblems;

  constructor(options: LostQuotasOptions) {
    this.#options = options;
    this.#pending = new PendingNames(options);
    this.#problems = new VolumeProblems({
      ...options,
      reason: 'QuotaNotSet',
      text: 'The quota of the volume is not set',
    });
  }

  /** PersistentVolumes of this provisioner whose quota cannot be set. */
  get count(): number {
    return this.#problems.count;
  }

  /** The volume is new, has changed or is gone. */
  changed(name: string): void {
    this.#pending.add(name);
  }

  /** Works until the signal aborts; resolves then. To be called once. */
  async run(stop: AbortSignal): Promise<void> {
    if (!stop.aborted) await Promise.race([this.#options.volumes.synced, once(stop, 'abort')]);
    while (!stop.aborted) {
      this.#pending.begin();
      const names = new Set([...this.#pending.take(), ...this.#problems.names]);
      for (const name of names) await this.#check(name, stop);
      await this.#pending.wait(stop);
    }
  }

  async #check(name: string, stop: AbortSignal): Promise<void> {
    const volume = this.#options.volumes.get(name);
    if (volume === undefined) {
      this.#problems.forget(name);
      return;
    }
    const problem = await this.#restore(volume, stop).catch((error: unknown) => (error as Error).message);
    if (!stop.aborted) this.#problems.report(volume, problem); // an aborted restoration says nothing about the quota
  }

  /** @returns why the quota is not set; undefined when it is, or when there is none to set. */
  async #restore(volume: PersistentVolume, stop: AbortSignal): Promise<string | undefined> {
    stop.throwIfAborted();
    const { quota, directories, isLeaving, checkDisk, logger } = this.#options;
    const found = recordedQuota(volume, directories);
    if (found === undefined) return undefined;
    if ('problem' in found) return found.problem;
    const { directory, id, bytes } = found;
    if (quota.has(directory) || isLeaving(directory)) return undefined;
    checkDisk();
    if (!(await directories.isDirectory(directory))) {
      this.#pending.putBack([volume.metadata.name]); // the event about its export says so
      return undefined;
    }
    const isSet = await quota.restore(found, () => !isLeaving(directory), stop);
    if (isSet)
      logger.warn(
        { directory, projectId: id, bytes: String(bytes) },
        'A quota that was lost has been restored from its PersistentVolume',
      );
    return undefined;
  }
}
