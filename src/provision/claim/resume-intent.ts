/** What becomes of an intent that is open when its claim is synced: it is carried on, left to the revoker, or closed. */
import type { Lister } from '../../kube/cache/store.ts';
import { claimReference, claimUid, claimWish, selectedNode } from '../claim-fields.ts';
import { waitingReason } from '../event-reasons.ts';
import { isBeingDeleted, isBusy, mayExist } from '../intents/intent-state.ts';
import type { Intent } from '../intents/intent.ts';
import type { Intents } from '../intents/intents.ts';
import { VolumePendingDeletionError, waitingText } from '../last-errors.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../objects.ts';
import type { Environment } from '../provision-controller-options.ts';
import type { ProvisionOptions } from '../provisioner.ts';
import type { Recoverable } from '../recoverable.ts';
import type { RevokeQueue } from '../revoke/revoke-queue.ts';
import { existingWhole, isReservedFor, storedVolume } from '../volume/stored-volume.ts';
import type { VolumeStore } from '../volume/volume-store.ts';
import type { ClaimWaits } from '../waits.ts';
import { reportStuck } from './attempt-failure.ts';
import type { Attempt } from './attempt-steps.ts';

export interface ResumeOptions extends Pick<Environment, 'client' | 'recorder'> {
  /** In the sidecar the `CsiProvisioner`. */
  provisioner: Recoverable;
  intents: Intents;
  revokeQueue: Pick<RevokeQueue, 'add' | 'closeNowOrAfterLateCalls'>;
  store: VolumeStore;
  volumes: Pick<Lister<PersistentVolume>, 'get'>;
  classes: Lister<StorageClass>;
  waits: Pick<ClaimWaits, 'add' | 'delete'>;
  isKnownProvisioner: (name: string) => boolean;
}

/**
 * The claim as it is now decides what becomes of its open intent; its class and its source are not read.
 *
 * @returns as `AttemptSteps.resume`. @throws as that.
 */
export async function resumeIntent(
  options: ResumeOptions,
  intent: Intent,
  claim: PersistentVolumeClaim | undefined,
  signal: AbortSignal,
): Promise<Attempt | 'nothing-to-do'> {
  const { provisioner, intents, revokeQueue, store, isKnownProvisioner } = options;
  const { record } = intent;
  if (isBusy(intent.state)) return 'nothing-to-do';
  const wish = await claimWish(record, claim, {
    isKnownProvisioner,
    qualifies: (it) => provisioner.shouldProvision?.(it, { signal }) ?? true,
  });
  if (wish === 'has-it') {
    await noteOtherStorage(options, intent, signal);
    closeServed(options, intent);
    return 'nothing-to-do';
  }
  if (isBusy(intent.state)) return 'nothing-to-do'; // the revoker has begun meanwhile
  if (claim === undefined || wish !== 'wanted' || isBeingDeleted(intent.state)) {
    revokeQueue.add(intent);
    return 'nothing-to-do';
  }
  // from now on the revoker does nothing; what was recorded of a wait does not hold any more
  await intents.onWritten(intent, { type: 'wanted' }, signal);
  if (store.isUnsaved(record.volume.name)) return 'nothing-to-do';
  try {
    checkName(options, claimUid(claim), record.volume.name);
    if (await closeIfServed(options, intent, claim, signal)) return 'nothing-to-do';
    await intents.takeOver(intent, signal);
  } catch (error) {
    throw reportWaiting(options, claim, error);
  }
  return { options: optionsOf(options, intent, claim), intent };
}

/** Marks the record if the stored volume is that of another instance: the claim may have moved while this one was away. */
async function noteOtherStorage(
  { provisioner, client, intents }: ResumeOptions,
  intent: Intent,
  signal: AbortSignal,
): Promise<void> {
  if (provisioner.isElsewhere === undefined || intent.state.kind === 'foreign' || !mayExist(intent.state)) return;
  const stored = await storedVolume(client, intent.record.volume.name, signal);
  if (stored !== undefined && provisioner.isElsewhere(stored)) intents.setNameTaken(intent, true);
}

function closeServed(options: ResumeOptions, intent: Intent): void {
  const { volume, nameTaken = false } = intent.record;
  if (nameTaken) {
    // the claim's storage has no PersistentVolume: its record is kept until the claim is gone
    reportStuck(options, intent, `PersistentVolume ${JSON.stringify(volume.name)} has other storage`);
  } else if (intent.state.kind !== 'foreign') options.revokeQueue.closeNowOrAfterLateCalls(intent);
}

/**
 * Closes the record if a PersistentVolume of the planned name already serves the claim.
 *
 * @returns whether it does.
 * @throws {VolumePendingDeletionError} if that PersistentVolume must be deleted first.
 * @throws {Error} if it is not for this claim: the intent is stuck.
 */
async function closeIfServed(
  options: ResumeOptions,
  intent: Intent,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<boolean> {
  const { volumes, client, intents, revokeQueue, waits } = options;
  const { nameTaken = false } = intent.record;
  const { name } = intent.record.volume;
  waits.add(intent.record.claim.uid, `volume/${name}`);
  // after a conflict the name is free only once the API server, not just the cache, has no such volume
  const existing = volumes.get(name) ?? (nameTaken ? await storedVolume(client, name, signal) : undefined);
  if (existing === undefined) {
    waits.delete(intent.record.claim.uid, `volume/${name}`);
    intents.setNameTaken(intent, false);
    return false;
  }
  const phase = existing.status?.phase;
  const leaving = existing.metadata.deletionTimestamp !== undefined || phase === 'Released' || phase === 'Failed';
  if (leaving || nameTaken)
    throw new VolumePendingDeletionError(`PersistentVolume ${JSON.stringify(name)} must be deleted first`);
  const whole = await existingWhole(client, existing, signal);
  if (!(await isReservedFor(claim, whole, { client, signal }))) {
    const message = `PersistentVolume ${JSON.stringify(name)} exists already and is not for this claim. Delete it, or recreate the claim`;
    reportStuck(options, intent, message);
    throw new Error(message);
  }
  // the storage of a volume that an administrator reserved, or another instance created, is compared when ours is saved
  if (mayExist(intent.state) && !(await isReservedFor(claim, whole, { client, signal, byUid: true }))) return false;
  if (mayExist(intent.state) && options.provisioner.isElsewhere?.(whole) === true) return false;
  revokeQueue.closeNowOrAfterLateCalls(intent);
  return true;
}

/** The options of an attempt for an open intent. The class may be gone: then the record has all that is known of it. */
function optionsOf(
  { classes }: ResumeOptions,
  { record: { volume } }: Intent,
  claim: PersistentVolumeClaim,
): ProvisionOptions {
  const { className: name, provisioner, defaults } = volume;
  const { persistentVolumeReclaimPolicy: reclaimPolicy, mountOptions } = defaults;
  const storageClass = classes.get(name) ?? {
    metadata: { name },
    provisioner,
    ...(reclaimPolicy !== undefined && { reclaimPolicy }),
    ...(mountOptions !== undefined && { mountOptions }),
  };
  return { claim, storageClass, volumeName: volume.name, selectedNodeName: selectedNode(claim) };
}

/** @throws as `Intents.checkName`; then the claim is synced again when the name is free. */
export function checkName(
  { intents, waits }: Pick<ResumeOptions, 'intents' | 'waits'>,
  uid: string,
  name: string,
): void {
  try {
    intents.checkName(uid, name);
  } catch (error) {
    waits.add(uid, `name/${name}`);
    throw error;
  }
}

/** Records an event on the claim if the error means that it waits for something else. @returns the error. */
export function reportWaiting(
  { recorder }: Pick<Environment, 'recorder'>,
  claim: PersistentVolumeClaim,
  error: unknown,
): unknown {
  const message = waitingText(error);
  if (message !== undefined) recorder.event(claimReference(claim), 'Normal', waitingReason, message, { once: true });
  return error;
}
