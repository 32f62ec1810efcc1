/**
 * The interface that a storage backend implements: `src/csi`, or a program of a library user. The controller of this
 * folder calls it.
 */
import type { Permit } from '../base/permit.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';

/** What one attempt to provision is given. */
export interface ProvisionOptions {
  /** The claim's class, from the cache: read only. */
  storageClass: StorageClass;
  /** The name the volume should get: `pvc-<claim UID>` unless the controller was given another naming. */
  volumeName: string;
  /** The claim, from the cache (or the remembered copy of a deleted one): read only. */
  claim: PersistentVolumeClaim;
  /** The node the scheduler chose, or an empty string. Not checked to exist. */
  selectedNodeName: string;
}

/** Passed to every call of a provisioner. */
export interface ProvisionContext {
  /** Aborts at the item's deadline, at the end of the grace at shutdown, and when the lease is lost. */
  signal: AbortSignal;
  /**
   * Permission to change the backend, valid while no other process may work on the same claim or volume. The controller checks it
   * before each call; a method that awaits something before it changes the backend checks it again, directly before that:
   * `while (permit?.isValid === false) await permit.renewed(signal)`. Absent: none is needed.
   */
  permit?: Permit | undefined;
}

/**
 * A storage backend. Every method may be called again for the same claim or volume, after a crash by another process,
 * and must then finish what was begun: the same claim always maps to the same volume. The attempts of a `Recoverable` provisioner
 * survive a crash.
 */
export interface Provisioner {
  /**
   * Creates the storage and describes it as a PersistentVolume, not yet saved. The controller sets the claim reference,
   * the class name, the provisioned-by annotation and the finalizer. Where they are left out it fills in the reclaim
   * policy and the mount options of the class, and the capacity, the access modes and the volume mode of the claim.
   *
   * @throws {ProvisionError} whose state says what is known about the backend.
   * @throws {IgnoredError} when this claim is not for this provisioner after all: no retry, no event.
   * Anything else thrown counts as a `ProvisionError` with state `finished`: the attempt failed and nothing runs. Where
   * a volume may be in progress all the same, say so with `in-background`, or a claim deleted now leaves it behind.
   */
  provision(options: ProvisionOptions, context: ProvisionContext): Promise<PersistentVolume>;
  /**
   * Removes the storage behind a volume. Must succeed when it is already gone.
   *
   * @throws {IgnoredError} when the volume is not for this instance: the object is left alone, no event.
   * @throws {VolumeInUseError} when it cannot be deleted yet: a Normal `VolumeDelete` event and a retry with back-off.
   * Anything else thrown becomes a `VolumeFailedDelete` event and a retry with back-off.
   */
  delete(volume: PersistentVolume, context: ProvisionContext): Promise<void>;
  /**
   * Called for every claim that has no volume and names this provisioner, before its class is read; at each of its
   * changes, each retry and each resync. Absent: yes. Each wait in here occupies a worker; `ProvisionController.wakeClaim` requeues
   * a claim that was refused for now.
   */
  shouldProvision?(claim: PersistentVolumeClaim, context: ProvisionContext): boolean | Promise<boolean>;
  /**
   * Keys of the annotations that the volume of a claim of this class depends on. A claim that waits after a failure is
   * retried immediately when one of them, its spec or its selected node changes; other changes do not shorten the wait.
   * Absent: a change of any annotation or label retries the claim. Pure; must not throw.
   */
  claimAnnotations?(storageClass: StorageClass): readonly string[];
  /** Whether claims with `volumeMode: Block` are served. Absent: no. */
  supportsBlock?(context: ProvisionContext): boolean;
  /**
   * Called for every volume of ours that is to be deleted, or whose finalizer was wrong; at each of its changes, each retry
   * and each resync. Absent: yes. `ProvisionController.wakeVolume` requeues a volume.
   */
  shouldDelete?(volume: PersistentVolume, context: ProvisionContext): boolean | Promise<boolean>;
  /**
   * Whether the storage of a volume is of this backend, as its source in `spec` says. Called for volumes that name this provisioner.
   * If not, annotation and source contradict each other: nothing is deleted, the finalizers stay, and an event says so. Absent: yes,
   * whatever the source. Of a Bound volume only `spec` counts. Pure; must not throw.
   */
  ownsSource?(volume: PersistentVolume): boolean;
  /**
   * What identifies the storage of a volume, of whatever claim or provisioner: two volumes with a key in common have the
   * same storage. In doubt return a common key; empty when it is not storage of this backend. Called for every PersistentVolume of
   * the cluster. Pure; must not throw.
   */
  storageKeys?(volume: PersistentVolume): readonly string[];
  /**
   * Whether `delete` decides itself what becomes of storage that another volume has, too. Absent: no; while there is another
   * volume with a key in common, of whatever provisioner, `delete` is not called, and an event says why.
   */
  handlesSharedStorage?(): boolean;
  /**
   * The claim is gone or has its volume, and no attempt for it is under way or to be repeated: what was kept for retries
   * may go. Called as often as that shows, also for claims of others. Must not throw.
   */
  forget?(claimUid: string): void;
}

/**
 * What is known about the backend after a failed attempt.
 *
 * - `finished`: nothing runs there; if the claim is deleted it is forgotten.
 * - `in-background`: a volume may be in progress; attempts go on even after the claim is deleted.
 * - `no-change`: the attempt never reached the backend; what was known before still holds.
 * - `reschedule`: nothing runs there and another node should be chosen.
 */
export type ProvisioningState = 'finished' | 'in-background' | 'no-change' | 'reschedule';

/**
 * What a failure says about storage that this attempt, or an earlier one with an unclear result, may have left.
 *
 * - `nothing`: only a retry can show it.
 * - `absent`: it is certain that nothing is left, and that this attempt created nothing, whatever the state says. The record
 *   stays open while an earlier call may still create the storage.
 * - `absent-if-repeated`: nothing is left if the failure repeats after every earlier attempt must have ended.
 * - `undecidable`: no retry will ever show it; an operator has to decide.
 */
export type Evidence = 'nothing' | 'absent' | 'absent-if-repeated' | 'undecidable';

/** A failed attempt to provision; its message becomes the claim's event, unchanged. */
export class ProvisionError extends Error {
  override readonly name = 'ProvisionError';
  readonly state: ProvisioningState;
  /** The request itself can never succeed (gRPC InvalidArgument): retries are held back for five minutes. */
  readonly infeasible: boolean;
  /** Counts where an attempt may have left something. */
  readonly afterUnclear: Evidence;

  /** @param options.afterUnclear - default `nothing`. */
  constructor(
    message: string,
    options: { state: ProvisioningState; infeasible?: boolean; afterUnclear?: Evidence; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.state = options.state;
    this.infeasible = options.infeasible ?? false;
    this.afterUnclear = options.afterUnclear ?? 'nothing';
  }
}

/** Not for this provisioner: no retry, no failure event. Only this error itself counts, not one that wraps it. */
export class IgnoredError extends Error {
  override readonly name = 'IgnoredError';
  readonly reason: string;

  constructor(reason: string) {
    super(`ignored because ${reason}`);
    this.reason = reason;
  }
}

/**
 * The volume cannot be deleted yet, which is no failure, such as while something still uses it. The deletion is retried with back-off, and
 * counts towards the failure threshold, but not as a failure in the metrics. Only this error itself counts, not one that wraps it.
 */
export class VolumeInUseError extends Error {
  override readonly name = 'VolumeInUseError';
  readonly reason: string;

  /** @param reason - the message of the event, unchanged. */
  constructor(reason: string) {
    super(reason);
    this.reason = reason;
  }
}
