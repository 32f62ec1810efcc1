/** Whether the claim of an open intent has its volume already. */
import { VolumePendingDeletionError } from '../last-errors.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import { existingWhole, isReservedFor, storedVolume } from '../volume/stored-volume.ts';
import type { ClaimWaits } from '../waits.ts';
import type { Intent } from '../intents/intent.ts';
import { mayExist } from '../intents/intent-state.ts';
import type { Intents } from '../intents/intents.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';
import { reportStuck } from './attempt-failure.ts';
import type { Recoverable } from '../recoverable.ts';
import type { RevokeQueue } from '../revoke/revoke-queue.ts';

export interface ServedIntentOptions {
  provisioner: Pick<Recoverable, 'isElsewhere'>;
  intents: Intents;
  revokeQueue: Pick<RevokeQueue, 'closeNowOrAfterLateCalls'>;
  volumes: Lister<PersistentVolume>;
  waits: Pick<ClaimWaits, 'add' | 'delete'>;
  client: KubeClient;
  recorder: Recorder;
}

/**
 * Closes the record if a PersistentVolume of the planned name already serves the claim.
 *
 * @returns whether it does.
 * @throws {VolumePendingDeletionError} if that PersistentVolume must be deleted first.
 * @throws {Error} if it is not for this claim: the intent is stuck.
 */
export async function closeIfServed(
  options: ServedIntentOptions,
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
