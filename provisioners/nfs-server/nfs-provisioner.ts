/** Volumes as directories of one NFS server, with an export each. */
import {
  type FulfilContext,
  type GidAllocator,
  IgnoredError,
  KeyedLocks,
  type Logger,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Plan,
  ProvisionError,
  type ProvisionContext,
  type ProvisionOptions,
  type Recoverable,
  type RevokeContext,
} from '../../src/index.ts';
import type { ClassVolumes } from './class-volumes.ts';
import type { ExportLimit, ExportSlot } from './export-limit.ts';
import type { Exports } from './exports.ts';
import type { ExportEntry } from './ganesha-config.ts';
import type { LostExports } from './lost-exports.ts';
import type { Project, ProjectQuota } from './project-quota.ts';
import type { LimitEvents } from './limit-events.ts';
import { type VolumeDirectories, volumeNamesIn } from './volume-directory.ts';
import { driverText, mountedPaths, requireAnnotations, requireOwn, volumeObject } from './volume-object.ts';
import { planVolume, prefixed, type VolumePlan } from './volume-plan.ts';

export interface NfsProvisionerOptions {
  /** Names us on volumes. */
  identity: string;
  /** Resolves once the identity is on the disk, and survives this process. */
  keepIdentity: () => Promise<void>;
  directories: VolumeDirectories;
  exports: Exports;
  lostExports: Pick<LostExports, 'coming' | 'leaving' | 'whenRestored'>;
  /** Undefined: volumes may grow. */
  quota: Pick<ProjectQuota, 'set' | 'remove'> | undefined;
  limit: ExportLimit;
  limitEvents: LimitEvents;
  classVolumes: ClassVolumes;
  gids: GidAllocator;
  /** The address on new volumes. */
  serverAddress: (signal: AbortSignal) => Promise<string>;
  /** Resolves once the NFS server responds, at the latest after some seconds. @throws when it does not. */
  whenServing: (signal: AbortSignal) => Promise<void>;
  /** @throws while the export directory does not respond. */
  checkDisk: () => void;
  /** Of volumes, for all provisioners that follow each other in one process: work of an earlier one may not have ended. */
  locks?: KeyedLocks;
  logger: Logger;
}

/** How long a new volume waits for the exports of others, which are restored first, in milliseconds. */
const patienceMs = 15_000;

/** Makes and deletes volumes. A repeat takes over what an earlier attempt left, also one of an earlier process. */
export class NfsProvisioner implements Recoverable {
  readonly #options: NfsProvisionerOptions;
  readonly #locks: KeyedLocks;
  /** By UID of the claim: names of volumes that this process has planned and not yet created. */
  readonly #planned = new Map<string, string>();

  constructor(options: NfsProvisionerOptions) {
    this.#options = options;
    this.#locks = options.locks ?? new KeyedLocks();
  }

  shouldProvision({ metadata }: PersistentVolumeClaim): boolean {
    const { limit, limitEvents, exports, directories } = this.#options;
    const { namespace = '', name, uid = '' } = metadata;
    const isMade = exports.find(directories.of(`pvc-${uid}`)) !== undefined; // and not saved yet
    const isAdmitted = isMade || limit.admits(uid);
    if (!isAdmitted) limitEvents.record({ namespace, name, uid }, { max: limit.max });
    return isAdmitted;
  }

  forget(claimUid: string): void {
    this.#options.limit.forget(claimUid);
    this.#options.limitEvents.forget(claimUid);
    const planned = this.#planned.get(claimUid);
    if (planned === undefined) return;
    this.#planned.delete(claimUid);
    this.#releaseGid(planned);
  }

  async plan(options: ProvisionOptions, { signal }: ProvisionContext): Promise<VolumePlan> {
    const { identity, gids, directories, exports } = this.#options;
    this.#checkDisk();
    await this.#options.keepIdentity().catch((cause: unknown) => {
      const message = `error writing the identity file: ${(cause as Error).message}`;
      throw new ProvisionError(message, { state: 'no-change', cause });
    });
    const isMade = exports.find(directories.of(options.volumeName)) !== undefined;
    const freeBytes = async (): Promise<bigint> => (isMade ? 2n ** 63n : directories.freeBytes());
    const plan = await planVolume(options, { identity, gids, freeBytes, signal });
    this.#planned.set(plan.claimUid, plan.volumeName);
    return plan;
  }

  async fulfil(given: Plan, context: FulfilContext): Promise<PersistentVolume> {
    const plan = this.#own(given);
    const section = () => this.#make(plan, context);
    return this.#locks.run(plan.volumeName, section, { signal: context.signal });
  }

  async revoke(given: Plan, context: RevokeContext): Promise<void> {
    const plan = this.#own(given);
    const { signal } = context;
    const { directories, exports } = this.#options;
    const directory = directories.of(plan.volumeName);
    await this.#locks.run(
      plan.volumeName,
      async () => {
        if (exports.find(directory) === undefined && !(await directories.exists(directory))) return;
        await context.beforeDelete(directory);
        await this.#remove(plan.volumeName, signal);
      },
      { signal },
    );
  }

  /**
   * The directory that a volume uses, wholly or in part, and the one that `delete` removes. The name of the server does not
   * count: it has more than one, and a volume that is kept in vain is better than one that is lost.
   */
  storageKeys(volume: PersistentVolume): readonly string[] {
    const { directories } = this.#options;
    const paths = mountedPaths(volume);
    const around = paths.map((path) => directories.around(path));
    const own = paths.length > 0 ? [volume.metadata.name] : [];
    // a path may have another beginning, as NFSv4 shows exports below a pseudo-root
    const names = [...own, ...volumeNamesIn([...paths, driverText(volume)].join('\n'))];
    return [...new Set([...around, ...names.map((name) => directories.named(name))])];
  }

  handleKey(handle: string): string {
    return handle;
  }

  release(plan: Plan): Promise<void> {
    this.#releaseGid((plan as VolumePlan).volumeName);
    return Promise.resolve();
  }

  async delete(volume: PersistentVolume, { signal }: ProvisionContext): Promise<void> {
    requireOwn(volume, this.#options.identity);
    requireAnnotations(volume, ['EXPORT_block', 'Export_Id', 'Project_block', 'Project_Id']);
    const { name } = volume.metadata;
    this.#options.directories.of(name); // throws for a name that is none of ours, before anything is touched
    await this.#locks.run(name, () => this.#remove(name, signal), { signal });
  }

  /** Frees the group id of a volume that was not created. */
  #releaseGid(volumeName: string): void {
    const { gids, exports, directories } = this.#options;
    if (exports.find(directories.of(volumeName)) === undefined) gids.release(volumeName);
  }

  /** Called before each step on the disk: a call that hangs would occupy a thread of this process, and a worker. */
  #checkDisk(): void {
    try {
      this.#options.checkDisk();
    } catch (error) {
      throw new ProvisionError((error as Error).message, { state: 'no-change', cause: error });
    }
  }

  /** @throws for a plan that another provisioner of the same name has to carry out: the data is there. */
  #own(given: Plan): VolumePlan {
    const plan = given as VolumePlan;
    const { identity } = this.#options;
    if (plan.identity === identity) return plan;
    const message = `the volume is being created by the provisioner with identity ${plan.identity}; this provisioner is ${identity}`;
    throw new ProvisionError(message, { state: 'no-change' });
  }

  async #make(plan: VolumePlan, context: FulfilContext): Promise<PersistentVolume> {
    const { signal } = context;
    const { directories, exports, serverAddress, whenServing, gids, classVolumes } = this.#options;
    this.#checkDisk();
    const server = await serverAddress(signal).catch((error: unknown) => {
      throw prefixed('error getting NFS server IP for volume: ', error);
    });
    await whenServing(signal);
    await this.#options.lostExports.whenRestored(AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]));
    const directory = directories.of(plan.volumeName);
    this.#options.lostExports.coming(directory);
    const isMade = exports.find(directory) !== undefined;
    using _slot = isMade ? undefined : this.#slot(plan);
    const { gid, className, volumeName } = plan;
    if (gid !== undefined) await gids.keep({ className, volumeName, gid }, { signal });
    const isNew = await directories.make(directory, { gid, isOurs: isMade }).catch((error: unknown) => {
      throw prefixed('error creating directory for volume: ', error);
    });
    let step = 'error creating export for volume: ';
    try {
      const entry: ExportEntry = await exports.add({ directory, squash: plan.squash }, signal);
      step = 'error creating quota for volume: ';
      const project = await this.#limitSize(directory, plan, signal);
      classVolumes.add(volumeName, className);
      this.#planned.delete(plan.claimUid);
      return volumeObject(plan, { server, entry, project });
    } catch (error) {
      throw await this.#undone(prefixed(step, error), { plan, canUndo: isNew && !context.mayExist });
    }
  }

  #slot({ claimUid, claim, className, maxExports }: VolumePlan): ExportSlot {
    const { limit, limitEvents, classVolumes } = this.#options;
    const count = maxExports === undefined ? 0 : classVolumes.count(className);
    const ofClass = maxExports === undefined ? undefined : { max: maxExports, count };
    const reserved = limit.reserve(claimUid, className, ofClass);
    if (reserved.slot !== undefined) return reserved.slot;
    if (claim !== undefined) limitEvents.record({ ...claim, uid: claimUid }, reserved.limit);
    throw new IgnoredError(`export limit of ${reserved.limit.max} has been reached`);
  }

  #limitSize(directory: string, { bytes }: VolumePlan, signal: AbortSignal): Promise<Project | undefined> {
    return this.#options.quota?.set(directory, BigInt(bytes), signal) ?? Promise.resolve(undefined);
  }

  /**
   * Takes back what a failed attempt made. Only a directory that is new in a first attempt cannot be in any volume; a
   * later one leaves everything to the next, which takes it over, or to `revoke`, which asks before it deletes.
   *
   * @returns what the attempt ends with.
   */
  async #undone(failure: ProvisionError, attempt: { plan: VolumePlan; canUndo: boolean }): Promise<ProvisionError> {
    const { plan, canUndo } = attempt;
    if (!canUndo) return failure;
    try {
      // without `beforeDelete`: a deletion that is recorded is followed by another attempt at once, without back-off
      await this.#remove(plan.volumeName, AbortSignal.timeout(10_000)); // also after the attempt was aborted
      return failure;
    } catch (err) {
      this.#options.logger.warn(
        { volume: plan.volumeName, err },
        'The remains of a failed volume could not be removed at once',
      );
      return new ProvisionError(failure.message, { state: 'in-background', cause: failure });
    }
  }

  /** Clients lose the volume before its data goes; an interrupted removal is repeated from the start. */
  async #remove(volumeName: string, signal: AbortSignal): Promise<void> {
    const { directories, exports, quota, classVolumes, gids, limit, logger } = this.#options;
    this.#checkDisk();
    const directory = directories.of(volumeName);
    let step = 'error deleting export: ';
    this.#options.lostExports.leaving(directory);
    try {
      await exports.remove(directory, signal);
      step = "deleted the volume's export but error deleting its backing path: ";
      await directories.remove(directory, signal);
      await exports.save(signal); // there may be room for it now
      step = "deleted the volume's backing path & export but error deleting quota: ";
      await quota?.remove(directory);
    } catch (error) {
      throw prefixed(step, error);
    } finally {
      limit.freed();
    }
    classVolumes.remove(volumeName);
    gids.release(volumeName);
    logger.debug({ volume: volumeName, directory }, 'Directory and export removed');
  }
}
