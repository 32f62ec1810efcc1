/** Another PersistentVolume has the same storage. */
import { sharedStorageText } from '../../provision/event-reasons.ts';
import type { Finding } from '../explanation.ts';
import type { Recorded } from '../provisioning-events.ts';
import { defineCause } from './cause.ts';

export const sharedStorage = defineCause({ name: 'shared-storage' });

/** From the newest event about what the deletion waits for. */
export function checkSharedStorage({ text }: Recorded): Finding | undefined {
  const [, other] = new RegExp(`${sharedStorageText} ([a-z0-9][a-z0-9.-]*), which `).exec(text) ?? [];
  if (other === undefined) return undefined;
  const isKept = text.endsWith('is not to be deleted');
  return {
    state: isKept ? 'stuck' : 'waiting',
    cause: 'shared-storage',
    message: `PersistentVolume ${other} has the same storage, and nothing is deleted while it exists.`,
    cure: isKept
      ? `If ${other} is to keep the storage, set the reclaim policy of this volume to Retain and delete it; else delete ${other}`
      : `See why ${other} stays: csi-provisioner why pv/${other}`,
  };
}
