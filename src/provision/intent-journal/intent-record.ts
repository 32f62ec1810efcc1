import type { ObjectReference } from '../../kube/kube-object.ts';
import type { PersistentVolumeSpec } from '../objects.ts';
import type { Plan } from '../recoverable.ts';

/**
 * How far an intent is.
 *
 * - `create`: the backend is being called, or will be.
 * - `unclear`: an attempt ended without a clear result.
 * - `revoke`: its claim is gone; once no request that was sent for it can be under way, in `quietInMs`, the storage is deleted.
 * - `delete`: the storage `handle` is being deleted; it must be gone before anything of the same name is created.
 * - `stuck`: it is left to an operator, or to a claim that wants the volume again; `reason` and `problem` say why.
 */
export type IntentPhase = (typeof intentPhases)[number];

/** All phases, in the order in which a record may go through them. */
export const intentPhases = ['create', 'unclear', 'revoke', 'delete', 'stuck'] as const;

/**
 * Why a record is stuck.
 *
 * - `unproved`: a PersistentVolume may have had the storage, so it may be kept on purpose. Nothing is tried again.
 * - `undecidable`: what an attempt has left cannot be determined.
 * - `restored`: the record may be outdated, or that of another cluster.
 */
export type StuckReason = (typeof stuckReasons)[number];

export const stuckReasons = ['unproved', 'undecidable', 'restored'] as const;

/** Whether a record is stuck because its storage may be kept on purpose. */
export function isUnproved({ phase, reason }: Pick<IntentRecord, 'phase' | 'reason'>): boolean {
  return phase === 'stuck' && reason === 'unproved';
}

/** Zero for each phase. */
export function noRecords(): Record<IntentPhase, number> {
  return Object.fromEntries(intentPhases.map((phase) => [phase, 0])) as Record<IntentPhase, number>;
}

/** What the controller adds to the volume that a provisioner describes: it must be known when claim and class are gone. */
export interface VolumeTemplate {
  /** Of the PersistentVolume. */
  name: string;
  claimRef: ObjectReference;
  className: string;
  /** Of the class; becomes the annotation `pv.kubernetes.io/provisioned-by`. */
  provisioner: string;
  /** Defaults for what the provisioner leaves out. */
  defaults: Pick<
    PersistentVolumeSpec,
    'accessModes' | 'capacity' | 'mountOptions' | 'persistentVolumeReclaimPolicy' | 'volumeMode'
  >;
}

/** One volume that is to be created, or revoked. Plain data without secrets. There is at most one for a claim. */
export interface IntentRecord {
  claim: { namespace: string; name: string; uid: string };
  volume: VolumeTemplate;
  /** Of the provisioner; means nothing to the journal. */
  plan: Plan;
  phase: IntentPhase;
  /**
   * The resource version of the PersistentVolumes since which none has had the volume's name: as of the cache before the
   * volume was planned, or a later one until which everything was seen. Absent: none is known.
   */
  since?: string;
  /** The storage, where it is known in the phase `revoke`, or is stuck as unproved. In `delete`, and perhaps in `stuck`: its deletion may have been begun. */
  handle?: string;
  /** Why it is stuck: there in that phase alone, as is `problem`. */
  reason?: StuckReason;
  /** The same as the text of a log line. */
  problem?: string;
  /** A PersistentVolume of the name has other storage: what was created for the claim has no PersistentVolume. */
  nameTaken?: true;
  /**
   * So many milliseconds after this was written, no request that was sent for it can be under way any more, neither one that creates the storage
   * nor one that saves the volume. Holds until the record is written without it, which comes before each request. In the phase `delete`: it was
   * quiet when the deletion was first sent. Absent: that is not known.
   */
  quietInMs?: number;
  /** RFC 3339. */
  createdAt: string;
}
