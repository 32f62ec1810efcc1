/**
 * Why a claim has no volume yet, or a volume is not deleted yet: for each reason, what has to change, and who notices it. A reason without
 * a row does not pass the type check; `test/integration/provision/wakes.test.ts` takes each obstacle away.
 */
import type { ClaimDecision } from './claim-fields.ts';
import type { StopReason } from './claim/attempt-steps.ts';
import type { WaitReason } from './intents/intent.ts';
import type { AttemptWait } from './last-errors.ts';
import type { ReleaseStep } from './object-progress.ts';
import type { ProvisioningState } from './provisioner.ts';

/**
 * Who has the claim or the volume synced again.
 *
 * - `own`: the watch of claims or volumes, as the object itself changes.
 * - `class`, `volume`, `name`: `ClaimWaits`, from the watches of classes and volumes, and from the records. `volumes`: `DeletionWaits`.
 * - `record`: the journal, or the revoker, which reports when it has finished.
 * - `provisioner`: `wakeClaim` or `wakeVolume` of the controller; `src/csi/plan-waits.ts` says what the CSI provisioner watches for it, and
 *   `NodeDeployment` wakes claims that its node has declined.
 * - `backend`: `retryFailed`, when the driver has reconnected.
 * - `timer`: the time is known. `back-off`: nothing can be watched, and it is tried again after a pause that has a maximum.
 */
type Waker =
  'own' | 'class' | 'volume' | 'name' | 'volumes' | 'record' | 'provisioner' | 'backend' | 'timer' | 'back-off';

export interface Wake {
  /** What has to change, in words that follow "once". */
  readonly once: string;
  readonly by: readonly Waker[];
}

/**
 * Why a claim has no volume: a decision against an attempt, an attempt that stopped, is refused or waits, or what its record waits for.
 * Failed attempts are named by their `ProvisioningState`.
 */
export type ClaimReason =
  | StopReason
  | Extract<ClaimDecision, { provision: false }>['reason']
  | AttemptWait
  | WaitReason
  | ProvisioningState
  | 'infeasible'
  | 'volume-unbound'
  | 'saving';

export const claimWakes = {
  // decisions
  bound: { once: 'the claim changes', by: ['own'] },
  'not-requested': { once: 'the claim is handed to a provisioner', by: ['own'] },
  'other-provisioner': { once: 'the claim is handed to this provisioner', by: ['own'] },
  'not-qualified': { once: 'the claim changes, or the provisioner can take it', by: ['own', 'provisioner', 'class'] },
  'waits-for-node': { once: 'a node is selected, or the StorageClass is replaced', by: ['own', 'class'] },
  'class-missing': { once: 'the StorageClass exists', by: ['class', 'back-off'] },
  // attempts that have stopped
  'volume-exists': { once: 'the PersistentVolume of its name is deleted', by: ['volume', 'own', 'timer'] },
  'no-block': { once: 'the provisioner supports block volumes', by: ['provisioner', 'backend', 'class', 'own'] },
  'class-differs': { once: 'the StorageClass and the claim name the same provisioner', by: ['class', 'own'] },
  served: { once: 'the claim changes', by: ['own'] },
  'claim-gone': { once: 'the claim is created again', by: ['own'] },
  'node-changed': { once: 'the claim is synced for the other node', by: ['own'] },
  'node-removed': { once: 'another node is selected', by: ['own'] },
  ignored: { once: 'the claim changes, or the provisioner can take it', by: ['own', 'provisioner', 'class'] },
  abandoned: { once: 'the claim changes', by: ['own', 'record'] },
  // attempts that wait
  'name-in-use': { once: 'the volume of that name is finished', by: ['name', 'back-off'] },
  draining: { once: 'the drain ends', by: ['record', 'back-off'] },
  'other-record': { once: 'the other provisioner has closed its record', by: ['record', 'back-off'] },
  'foreign-record': { once: 'the other process has finished, or is silent', by: ['record', 'back-off'] },
  'volume-leaving': { once: 'the PersistentVolume is deleted', by: ['volume', 'back-off'] },
  'volume-unbound': { once: 'the PersistentVolume is bound, or deleted', by: ['volume', 'own', 'back-off'] },
  infeasible: { once: 'five minutes have passed, or the StorageClass is replaced', by: ['timer', 'class', 'backend'] },
  saving: { once: 'the volume can be saved', by: ['back-off'] },
  // what a record waits for
  'earlier-call': { once: 'earlier calls have ended', by: ['timer', 'record'] },
  'other-process': { once: 'the other process has finished, or is silent', by: ['record', 'timer'] },
  'late-save': { once: 'late requests have ended', by: ['timer', 'record'] },
  proof: { once: 'the history of PersistentVolumes is read', by: ['timer', 'record'] },
  // attempts that have failed
  finished: { once: 'the pause has passed', by: ['back-off', 'backend', 'class', 'provisioner'] },
  'in-background': { once: 'the pause has passed', by: ['back-off', 'backend', 'class'] },
  'no-change': { once: 'the pause has passed', by: ['back-off', 'backend', 'class', 'provisioner'] },
  reschedule: { once: 'the pause has passed', by: ['back-off', 'own', 'class', 'provisioner'] },
} as const satisfies Record<ClaimReason, Wake>;

/** Why a volume that is to be deleted is still there; `syncing` and `queued` wait for a worker only. */
export type VolumeReason = Exclude<ReleaseStep, 'syncing' | 'queued' | 'idle'> | 'refused' | 'not-live' | 'ignored';

export const volumeWakes = {
  'earlier-call': { once: 'earlier calls have ended', by: ['timer'] },
  'shared-storage': { once: 'the other PersistentVolume changes or is deleted', by: ['volumes', 'timer'] },
  'other-source': { once: 'the annotation, or the reclaim policy, is corrected', by: ['own'] },
  refused: { once: 'the provisioner allows it, as when the volume is detached', by: ['provisioner', 'own'] },
  'not-live': { once: 'the cache shows what the API server has', by: ['own'] },
  ignored: { once: 'the volume changes, as it is the work of another instance', by: ['own'] },
  retrying: { once: 'the pause has passed', by: ['back-off', 'backend', 'own'] },
} as const satisfies Record<VolumeReason, Wake>;
