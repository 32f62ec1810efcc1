/** The progress of the deletion of a released volume, from what the controller already knows. */
import type { KeyState } from '../../kube/queue/work-queue.ts';
import type { LastError } from '../claim/last-errors.ts';
import type { PersistentVolume } from '../objects.ts';
import { contradictionOf, ownerOf, shouldDelete, type VolumeOwnership } from '../volume-fields.ts';

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
  quietInMs: (name: string) => number;
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
  const quietInMs = parts.quietInMs(name);
  const isShared = sharedStorageText !== undefined;
  const step = owner === 'ours' ? stepOf(state, { isQuiet: quietInMs > 0, isShared }) : 'other-source';
  return {
    name,
    claim: claimRef?.name === undefined ? '' : `${claimRef.namespace ?? ''}/${claimRef.name}`,
    className: volume.spec.storageClassName ?? '',
    releasedAt: volume.status?.lastPhaseTransitionTime,
    step,
    failures: parts.failures(name),
    lastError: parts.lastError(name),
    nextTryInMs: step === 'earlier-call' ? quietInMs : state.state === 'delayed' ? state.inMs : undefined,
    waitText:
      step === 'shared-storage'
        ? sharedStorageText
        : step === 'other-source'
          ? contradictionOf(volume, parts.isKnownProvisioner)?.what
          : undefined,
  };
}

function stepOf({ state }: KeyState, { isQuiet, isShared }: { isQuiet: boolean; isShared: boolean }): ReleaseStep {
  if (state === 'processing') return 'syncing';
  if (isQuiet) return 'earlier-call';
  if (isShared) return 'shared-storage';
  if (state === 'waiting') return 'queued';
  return state === 'delayed' ? 'retrying' : 'idle';
}
