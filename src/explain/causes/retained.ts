/** The volume is kept on purpose. */
import { claimName } from '../claim-name.ts';
import type { Finding } from '../explanation.ts';
import { isToBeDeleted, type VolumeFacts } from '../volume-facts-reader.ts';
import { defineCause } from './cause.ts';

export const retained = defineCause({ name: 'retained' });

export function checkRetained({ volume }: VolumeFacts): Finding | undefined {
  const phase = volume.status?.phase ?? 'Pending';
  if (isToBeDeleted(volume) || volume.metadata.deletionTimestamp !== undefined) return undefined;
  const policy = volume.spec.persistentVolumeReclaimPolicy ?? 'Retain';
  return {
    state: 'ok',
    cause: 'retained',
    message:
      phase === 'Released'
        ? `The claim ${claimName(volume)} is gone, and the volume is kept: its reclaim policy is ${policy}.`
        : `The volume is ${phase}: no claim was bound to it, so nothing is to be deleted.`,
    cure:
      phase === 'Released'
        ? 'If its data is not needed: delete the storage and then the PersistentVolume, or set the reclaim policy to Delete'
        : '',
  };
}
