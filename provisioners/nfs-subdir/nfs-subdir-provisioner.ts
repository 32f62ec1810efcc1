import {
  classOfVolume,
  type Clock,
  type FulfilContext,
  type KubeClient,
  type Logger,
  type OpenedDirectory,
  ParameterError,
  type PersistentVolume,
  type Plan,
  ProvisionError,
  type ProvisionContext,
  type ProvisionerParts,
  type ProvisionOptions,
  pvFor,
  type Recoverable,
  type RevokeContext,
  type StorageClass,
} from '../../src/index.ts';
import { checkClaim } from './check-claim.ts';
import { recordArchive } from './archives.ts';
import {
  archiveDirectoryOf,
  archiveRetentionOf,
  checkArchiveParameters,
  type Fate,
  fateOf,
} from './class-parameters.ts';
import { describedUse, insideKey, keysOfHolders, storageKeysOf } from './directory-use.ts';
import type { Neighbour, Neighbours } from './neighbours.ts';
import { type PatientCalls, SilentShareError } from './patient-calls.ts';
import { isMadeBy } from './own-volumes.ts';
import { BusyPathError, PathHolds } from './path-holds.ts';
import { recordedPlan, type VolumePlan } from './recorded-plan.ts';
import type { Settings } from './settings.ts';
import type { Share } from './share.ts';
import { ShareError } from './share-guard.ts';
import { pathIfBelow, pathOfClaim, pathOfVolume, type VolumePath } from './volume-path.ts';

export interface NfsSubdirOptions {
  settings: Pick<Settings, 'server' | 'sharePath' | 'mountPoint' | 'provisionerName'>;
  share: Share;
  /** Runs every operation on the share. */
  calls: PatientCalls;
  neighbours: Neighbours;
  client: KubeClient;
  clock: Clock;
  /** As of `ProvisionerParts`. */
  volumesWith: ProvisionerParts['volumesWith'];
  logger: Logger;
}

/** For callers that never abort. */
const unending: ProvisionContext = { signal: new AbortController().signal };

/** Volumes are directories of one NFS export, which is mounted here. */
export class NfsSubdirProvisioner implements Recoverable {
  readonly #options: NfsSubdirOptions;
  readonly #holds = new PathHolds();

  constructor(options: NfsSubdirOptions) {
    this.#options = options;
  }

  async plan(options: ProvisionOptions, { signal }: ProvisionContext = unending): Promise<VolumePlan> {
    return await this.#options.calls
      .run((until) => this.#plan(options, until), signal, { isShort: true })
      .catch(asProvisionError);
  }

  async #plan(options: ProvisionOptions, signal: AbortSignal): Promise<VolumePlan> {
    const { settings, share } = this.#options;
    const { claim, storageClass, volumeName } = options;
    checkClaim(claim, settings.provisionerName);
    checkArchiveParameters(storageClass);
    const { path, isShared } = pathOfClaim(options, [settings.sharePath, settings.mountPoint]);
    const nfs = { server: settings.server, path: this.#remote(path), readOnly: false };
    return {
      path,
      // what has the volume's name in its own is of an earlier attempt at most
      wasThere: isShared && (await share.has(path, signal)),
      claimUid: claim.metadata.uid ?? '',
      className: storageClass.metadata.name,
      volume: pvFor({ claim, storageClass, volumeName, source: { nfs } }),
    };
  }

  async fulfil(plan: Plan, { signal }: Pick<FulfilContext, 'signal'> = unending): Promise<PersistentVolume> {
    const planned = recordedPlan(plan);
    const { calls } = this.#options;
    await calls.run((until) => this.#make(planned, until), signal, { isShort: true }).catch(asProvisionError);
    return structuredClone(planned.volume);
  }

  async #make({ path, volume, claimUid }: VolumePlan, signal: AbortSignal): Promise<void> {
    using _hold = this.#holds.making(path);
    this.#options.neighbours.making(volume.metadata.name, { path, claimUid });
    await this.#options.share.make(path, signal);
  }

  async delete(volume: PersistentVolume, { signal }: ProvisionContext): Promise<void> {
    await this.#options.calls.run((until) => this.#delete(volume, until), signal);
  }

  async #delete(volume: PersistentVolume, signal: AbortSignal): Promise<void> {
    const { settings, share, neighbours, client, logger } = this.#options;
    const { name } = volume.metadata;
    const path = pathOfVolume(volume, settings.sharePath);
    const server = volume.spec.nfs?.server;
    if (server !== settings.server) {
      logger.warn(
        { volume: name, server, ours: settings.server },
        'The volume names another NFS server; it is assumed to be this one under another name',
      );
    }
    using _hold = await this.#holds.removing(path, signal);
    if (!(await share.has(path, signal))) {
      logger.warn({ volume: name }, `path ${this.#local(path)} does not exist, deletion skipped`);
    } else {
      await this.#settle(name, path, wayOf(await classOfVolume(client, volume, { signal })), signal);
    }
    neighbours.done(name);
  }

  /** Undoes what was made for a claim that is gone, as its class says of volumes that are deleted. */
  async revoke(plan: Plan, context: RevokeContext): Promise<void> {
    const { calls } = this.#options;
    await calls.run((signal) => this.#revoke(plan, { ...context, signal }), context.signal);
  }

  async #revoke(plan: Plan, context: RevokeContext): Promise<void> {
    const { signal } = context;
    const { share, neighbours } = this.#options;
    const { path, wasThere, volume, className, claimUid } = recordedPlan(plan);
    using _hold = await this.#holds.removing(path, signal);
    if (!wasThere && (await share.has(path, signal))) {
      const way = await this.#wayOfGone(className, path, signal);
      if (way.fate !== 'retain') {
        await context.beforeDelete(path.join('/'));
        await this.#settle(volume.metadata.name, path, way, signal);
      }
    }
    neighbours.settled(claimUid);
    neighbours.done(volume.metadata.name);
  }

  /** Keys of the directories that the volume may use, and of all above them, with which they would be deleted. */
  storageKeys(volume: PersistentVolume): readonly string[] {
    return storageKeysOf(volume, this.#options.settings);
  }

  /** A directory stays while another volume has it, and goes with the last. */
  handlesSharedStorage(): boolean {
    return true;
  }

  handleKey(handle: string): string {
    return insideKey(handle);
  }

  forget(claimUid: string): void {
    this.#options.neighbours.settled(claimUid);
  }

  /** @throws {ProvisionError} for an operator, where the class is gone and the directory is not empty. */
  async #wayOfGone(className: string, path: VolumePath, signal: AbortSignal): Promise<Way> {
    const { client, share } = this.#options;
    const named = { metadata: { name: '' }, spec: { storageClassName: className } };
    try {
      return wayOf(await classOfVolume(client, named, { signal }));
    } catch (error) {
      signal.throwIfAborted();
      if (await share.isEmpty(path, signal)) return { fate: 'remove' }; // there is nothing to keep
      throw new ProvisionError(messageOf(error), { state: 'no-change', afterUnclear: 'undecidable', cause: error });
    }
  }

  /** Removes or archives a directory, unless other volumes lie in it. */
  async #settle(name: string, path: VolumePath, way: Way, signal: AbortSignal): Promise<void> {
    const { fate } = way;
    const { share, neighbours, logger } = this.#options;
    if (fate === 'retain') return;
    let other = neighbours.find(name, path);
    if (other === undefined) {
      await this.#checkStrangers(name, path, fate, signal);
      other = neighbours.find(name, path); // one may have come meanwhile
    }
    if (other?.lies === 'inside') {
      neighbours.blocked(name);
      throw new Error(this.#textOf(name, path, other));
    }
    if (other !== undefined) {
      logger.warn(
        { volume: name, path: this.#local(path), other: other.name },
        'Another volume has the same directory, which is kept',
      );
      return;
    }
    if (fate === 'remove') {
      await share.remove(path, signal);
      logger.info({ volume: name, path: this.#local(path) }, 'Directory removed');
      return;
    }
    await this.#archive(name, path, way, signal);
  }

  async #archive(name: string, path: VolumePath, { folder, className }: Way, signal: AbortSignal): Promise<void> {
    const { share, clock, logger } = this.#options;
    const archive = await share.archivePath(path, { volumeName: name, folder }, signal);
    using _target = await this.#holds.removing(archive, signal); // no claim may get the name meanwhile
    const archivedAt = new Date(clock.wallMs()).toISOString();
    const before =
      className === undefined
        ? undefined
        : (root: OpenedDirectory, inode: string) =>
            recordArchive(root, { volume: name, className, archive, inode, archivedAt });
    await share.archive(path, archive, { ...(before && { before }), signal });
    logger.info({ volume: name, path: this.#local(path), archive: archive.join('/') }, 'Directory archived');
  }

  /**
   * Checks volumes that this provisioner did not create, or that are not below the export: the directory stays while one of them uses it,
   * one in it or one above it, or may do so.
   *
   * @throws {Error} naming such a volume.
   */
  async #checkStrangers(name: string, path: VolumePath, fate: Fate, signal: AbortSignal): Promise<void> {
    const { settings, volumesWith } = this.#options;
    for (const other of await volumesWith(keysOfHolders(path), signal)) {
      const isOurs = isMadeBy(other, settings.provisionerName);
      if (other.metadata.name === name) continue;
      if (isOurs && pathIfBelow(other, settings.sharePath) !== undefined) continue; // found as a neighbour
      if (await this.#isGoing(other, fate, signal)) continue;
      const { uses, cure } = describedUse(other, settings);
      const whose = isOurs ? 'which is not below this export' : 'which another provisioner or an administrator created';
      throw new Error(
        `volume ${other.metadata.name}, ${whose}, ${uses}: ${this.#remote(path)} of volume ${name} is kept until ${other.metadata.name} is deleted. ${cure}`,
      );
    }
  }

  /**
   * Whether the volume is about to be deleted by another instance of this program, which would wait for our volume likewise, and keeps no
   * more of the data than we do. So of two such volumes the one that keeps more goes first, and if they keep the same, either.
   */
  async #isGoing(other: PersistentVolume, fate: Fate, signal: AbortSignal): Promise<boolean> {
    const { metadata, spec, status } = other;
    const isReleased = status?.phase === 'Released' && spec.persistentVolumeReclaimPolicy === 'Delete';
    if (!isReleased || spec.nfs === undefined) return false;
    try {
      const storageClass = await classOfVolume(this.#options.client, other, { signal });
      return isMadeBy({ metadata }, storageClass.provisioner) && keeps[fateOf(storageClass)] <= keeps[fate];
    } catch {
      signal.throwIfAborted();
      return false; // what becomes of it is not known
    }
  }

  #textOf(name: string, path: VolumePath, other: Neighbour): string {
    return `volume ${other.name} lies in ${this.#remote(other.path)}, inside ${this.#remote(path)} of volume ${name}: it has to be deleted first`;
  }

  #remote(path: VolumePath): string {
    return [this.#options.settings.sharePath.replace(/\/$/, ''), ...path].join('/');
  }

  #local(path: VolumePath): string {
    return [this.#options.settings.mountPoint.replace(/\/$/, ''), ...path].join('/');
  }
}

/** How much of the data is left, as an order. */
const keeps: Readonly<Record<Fate, number>> = { remove: 0, archive: 1, retain: 2 };

/** What becomes of a directory, and where an archive goes. */
interface Way {
  fate: Fate;
  folder?: string | undefined;
  /** Only of a class whose archives have an end: by it that is known later. */
  className?: string | undefined;
}

/** @throws {ParameterError} for a class of which that is not clear. */
function wayOf(storageClass: StorageClass): Way {
  const isLimited = archiveRetentionOf(storageClass) !== undefined;
  return {
    fate: fateOf(storageClass),
    folder: archiveDirectoryOf(storageClass),
    className: isLimited ? storageClass.metadata.name : undefined,
  };
}

/** What making a directory fails with: it is not there, and nothing goes on. */
function asProvisionError(error: unknown): never {
  if (error instanceof ProvisionError) throw error;
  if (error instanceof ParameterError) throw new ProvisionError(error.message, { state: 'finished', cause: error });
  if (error instanceof ShareError) {
    const mayGoOn = error instanceof SilentShareError;
    throw new ProvisionError(error.message, { state: mayGoOn ? 'in-background' : 'no-change', cause: error });
  }
  const state = error instanceof BusyPathError ? 'no-change' : 'finished';
  const message = `unable to create directory to provision new pv: ${messageOf(error)}`;
  throw new ProvisionError(message, { state, cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
