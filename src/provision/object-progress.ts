/** How far a claim without a volume is, and the deletion of a released volume, from what the controller already knows. */
import type { KeyState } from '../kube/queue/work-queue.ts';
import { claimUid, className, namesVolume, requestedProvisioner, selectedNode } from './claim-fields.ts';
import type { WaitReason } from './intents/intent.ts';
import type { LastError } from './last-errors.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import { contradictionOf, ownerOf, shouldDelete, type VolumeOwnership } from './volume-fields.ts';

/**
 * What a claim waits for.
 *
 * - `syncing`: a worker has it, and calls the driver or is about to.
 * - `queued`: it waits for a worker.
 * - `saving`: its volume is created, and cannot be saved yet.
 * - `retrying`: the last attempt failed, the next one is scheduled.
 * - `waiting`: the last attempt found that something else has to end first, such as the work of another process; nothing has failed.
 * - `class-missing`: its StorageClass does not exist.
 * - `not-handed-over`: kube-controller-manager has not handed it to its provisioner yet.
 * - `waiting-for-consumer`: its class has `WaitForFirstConsumer`, and no node is selected.
 * - `volume-made`: its PersistentVolume exists, and kube-controller-manager has not bound it.
 * - `idle`: nothing is going to happen until the claim changes, or it is the work of another instance.
 */
export type ClaimStep =
  | 'syncing'
  | 'queued'
  | 'saving'
  | 'retrying'
  | 'waiting'
  | 'class-missing'
  | 'not-handed-over'
  | 'waiting-for-consumer'
  | 'volume-made'
  | 'idle';

/** A claim of this provisioner that has no volume. */
export interface ClaimProgress {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Empty: it names none. */
  readonly className: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly step: ClaimStep;
  /** Attempts that failed in a row. */
  readonly failures: number;
  /** Undefined: none, or the controller does not keep them. */
  readonly lastError: LastError | undefined;
  /** Milliseconds until the next attempt; undefined while none is scheduled. */
  readonly nextTryInMs: number | undefined;
  /** For how long a worker has had it, in milliseconds; undefined: none has it. */
  readonly syncingForMs: number | undefined;
  /** What its open record waits for: that of a former attempt is revoked first. Undefined: nothing. */
  readonly wait: DeliberateWait | undefined;
}

/** A wait that keeps storage from being lost or left behind. */
export interface DeliberateWait {
  readonly reason: WaitReason;
  /** Milliseconds until it ends, for a proof at the latest; undefined: once the other process is done. */
  readonly endsInMs: number | undefined;
}

export interface ClaimProgressParts {
  isKnownProvisioner: (name: string) => boolean;
  getClass: (name: string) => StorageClass | undefined;
  stateOf: (uid: string) => KeyState;
  failures: (uid: string) => number;
  lastError: (uid: string) => LastError | undefined;
  /** Whether a volume of the name waits to be saved. */
  isUnsaved: (volumeName: string) => boolean;
  /** Whether a PersistentVolume of the name is there. */
  hasVolume: (volumeName: string) => boolean;
  volumeName: (claim: PersistentVolumeClaim) => string;
  wait: (uid: string) => DeliberateWait | undefined;
}

/** Undefined for a claim that has its volume, or that is not for this provisioner. */
export function claimProgress(claim: PersistentVolumeClaim, parts: ClaimProgressParts): ClaimProgress | undefined {
  if (namesVolume(claim)) return undefined;
  const provisioner = requestedProvisioner(claim);
  if (provisioner === undefined) return beforeHandOver(claim, parts);
  if (!parts.isKnownProvisioner(provisioner)) return undefined;
  const uid = claimUid(claim);
  const state = parts.stateOf(uid);
  const lastError = parts.lastError(uid);
  const step = stepOf(claim, state, parts);
  return {
    ...identityOf(claim),
    step,
    failures: lastError?.kind === 'waiting' ? 0 : parts.failures(uid),
    lastError,
    syncingForMs: state.state === 'processing' ? state.forMs : undefined,
    nextTryInMs: state.state === 'delayed' && step !== 'volume-made' ? state.inMs : undefined,
    wait: parts.wait(uid),
  };
}

/**
 * A claim that no provisioner serves yet: with `WaitForFirstConsumer`, kube-controller-manager hands it over once a node is
 * selected for a Pod that uses it. There may be many, so nothing is looked up but the class.
 */
function beforeHandOver(
  claim: PersistentVolumeClaim,
  { getClass, isKnownProvisioner }: ClaimProgressParts,
): ClaimProgress | undefined {
  const storageClass = getClass(className(claim));
  if (storageClass === undefined || !isKnownProvisioner(storageClass.provisioner)) return undefined;
  return {
    ...identityOf(claim),
    step: waitsForConsumer(claim, storageClass) ? 'waiting-for-consumer' : 'not-handed-over',
    failures: 0,
    lastError: undefined,
    syncingForMs: undefined,
    nextTryInMs: undefined,
    wait: undefined,
  };
}

function identityOf(
  claim: PersistentVolumeClaim,
): Pick<ClaimProgress, 'namespace' | 'name' | 'uid' | 'className' | 'createdAt'> {
  const { namespace = '', name, creationTimestamp } = claim.metadata;
  return { namespace, name, uid: claimUid(claim), className: className(claim), createdAt: creationTimestamp ?? '' };
}

function waitsForConsumer(claim: PersistentVolumeClaim, { volumeBindingMode }: StorageClass): boolean {
  return volumeBindingMode === 'WaitForFirstConsumer' && selectedNode(claim) === '';
}

function stepOf(claim: PersistentVolumeClaim, { state }: KeyState, parts: ClaimProgressParts): ClaimStep {
  if (state === 'processing') return 'syncing';
  const volumeName = parts.volumeName(claim);
  if (parts.isUnsaved(volumeName)) return 'saving';
  if (parts.hasVolume(volumeName)) return 'volume-made'; // a retry may still be scheduled
  const storageClass = parts.getClass(className(claim));
  if (storageClass === undefined) return 'class-missing';
  if (state === 'waiting') return 'queued';
  if (state === 'delayed') return parts.lastError(claimUid(claim))?.kind === 'waiting' ? 'waiting' : 'retrying';
  return waitsForConsumer(claim, storageClass) ? 'waiting-for-consumer' : 'idle';
}

/**
 * What the deletion of a volume waits for.
 *
 * - `syncing`: a worker has it, and calls the driver or is about to.
 * - `queued`: it waits for a worker.
 * - `retrying`: the last attempt failed, the next one is scheduled.
 * - `earlier-call`: a call of an earlier process may still be creating its storage.
 * - `shared-storage`: another PersistentVolume has the same storage.
 * - `other-source`: it names this provisioner, but its storage is of another backend: it is left as it is until that is corrected.
 * - `idle`: nothing happens until something changes: it is still attached, or it is the work of another instance.
 */
export type ReleaseStep =
  'syncing' | 'queued' | 'retrying' | 'earlier-call' | 'shared-storage' | 'other-source' | 'idle';

/** A volume that names this provisioner, is released, and whose storage is to be deleted. */
export interface ReleasedVolume {
  readonly name: string;
  /** Of the claim that had it, as `namespace/name`; empty: not known. */
  readonly claim: string;
  /** Empty: it names none. */
  readonly className: string;
  /** RFC 3339; undefined where the API server does not say. */
  readonly releasedAt: string | undefined;
  readonly step: ReleaseStep;
  /** Attempts that failed in a row. */
  readonly failures: number;
  /** Undefined: none, or the controller does not keep them. */
  readonly lastError: LastError | undefined;
  /** Milliseconds until the next attempt, or until the end of a wait; undefined while neither is scheduled. */
  readonly nextTryInMs: number | undefined;
  /** For `shared-storage`: which volume it waits for; for `other-source`: what is wrong. */
  readonly waitText: string | undefined;
}

export interface ReleasedVolumeParts extends VolumeOwnership {
  addFinalizer: boolean;
  stateOf: (name: string) => KeyState;
  failures: (name: string) => number;
  lastError: (name: string) => LastError | undefined;
  /** For how long its storage must stay because of an earlier call, in milliseconds; 0: not at all. */
  heldInMs: (name: string) => number;
  /** For which other volume with the same storage it waits. */
  sharedStorageText: (name: string) => string | undefined;
}

/** Undefined for a volume that is not to be deleted by this provisioner. */
export function releasedVolume(volume: PersistentVolume, parts: ReleasedVolumeParts): ReleasedVolume | undefined {
  // the phase first: nearly all volumes are bound
  if (!shouldDelete(volume, parts.addFinalizer)) return undefined;
  const owner = ownerOf(volume, parts);
  if (owner === 'others') return undefined;
  const { name } = volume.metadata;
  const { claimRef } = volume.spec;
  const state = parts.stateOf(name);
  const sharedStorageText = parts.sharedStorageText(name);
  const heldInMs = parts.heldInMs(name);
  const isShared = sharedStorageText !== undefined;
  const step = owner === 'ours' ? releaseStepOf(state, { isHeld: heldInMs > 0, isShared }) : 'other-source';
  return {
    name,
    claim: claimRef?.name === undefined ? '' : `${claimRef.namespace ?? ''}/${claimRef.name}`,
    className: volume.spec.storageClassName ?? '',
    releasedAt: volume.status?.lastPhaseTransitionTime,
    step,
    failures: parts.failures(name),
    lastError: parts.lastError(name),
    nextTryInMs: step === 'earlier-call' ? heldInMs : state.state === 'delayed' ? state.inMs : undefined,
    waitText:
      step === 'shared-storage'
        ? sharedStorageText
        : step === 'other-source'
          ? contradictionOf(volume, parts.isKnownProvisioner)?.what
          : undefined,
  };
}

function releaseStepOf({ state }: KeyState, { isHeld, isShared }: { isHeld: boolean; isShared: boolean }): ReleaseStep {
  if (state === 'processing') return 'syncing';
  if (isHeld) return 'earlier-call';
  if (isShared) return 'shared-storage';
  if (state === 'waiting') return 'queued';
  return state === 'delayed' ? 'retrying' : 'idle';
}
