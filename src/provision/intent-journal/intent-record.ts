import type { ObjectReference } from '../../kube/kube-object.ts';
import type { PersistentVolumeSpec } from '../objects.ts';
import type { Plan } from '../recoverable.ts';

/**
 * How far an intent is.
 *
 * - `create`: the backend is being called, or will be.
 * - `unclear`: an attempt ended without a clear result.
 * - `delete`: the storage `handle` is being deleted; it must be gone before anything of the same name is created.
 * - `revoked`: the storage was deleted or did not exist; it is revoked once more when no call that creates it can be under way any more.
 * - `stuck`: what is left cannot be determined; `problem` says why.
 * - `unproved`: storage may be left, which a PersistentVolume may have had: it may be kept on purpose; `problem` says more.
 */
export type IntentPhase = (typeof intentPhases)[number];

/** All phases, in the order in which a record may go through them. */
export const intentPhases = ['create', 'unclear', 'delete', 'revoked', 'stuck', 'unproved'] as const;

/** Nothing is done about a record in this phase: an operator decides, or a claim that wants the volume again. */
export function isLeftAlonePhase(phase: IntentPhase): boolean {
  return phase === 'stuck' || phase === 'unproved';
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
  /**
   * Of the provisioner; means nothing to the journal. In the process that has planned it this is the object that `plan` returned, never a
   * copy: the provisioner may have kept something for it.
   */
  plan: Plan;
  phase: IntentPhase;
  /**
   * The resource version of the PersistentVolumes since which none has had the volume's name: as of the cache before the
   * volume was planned, or a later one until which everything was seen. Absent: none is known.
   */
  since?: string;
  /** The storage whose deletion may have been begun: always there in the phase `delete`, perhaps in `stuck` and `unproved`. */
  handle?: string;
  /** Why it is stuck or unproved, as the text of a log line. */
  problem?: string;
  /** A PersistentVolume of the name has other storage: what was created for the claim has no PersistentVolume. */
  nameTaken?: true;
  /** The process ended without a clear response to a request that creates the PersistentVolume, which may still be carried out. */
  lateSave?: true;
  /**
   * Beside `handle`: no call that creates the storage could be under way any more when its deletion was first sent, so that it needs no
   * second revoke. Absent: a call could be, or that is not known.
   */
  noLateCalls?: true;
  /** RFC 3339. */
  createdAt: string;
}
