/** Nobody deletes the storage of the volume. */
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { deletionHistory } from '../provisioning-events.ts';
import { isInTree } from '../provisioner-facts.ts';
import { checkServing } from '../serving.ts';
import { durationText } from '../time-text.ts';
import { deleterOf, isToBeDeleted, type VolumeFacts } from '../volume-facts-reader.ts';
import { defineCause } from './cause.ts';
import { releasedAtMs } from './deleting.ts';

export const noDeleter = defineCause({ name: 'no-deleter' });

/** The provisioner that has to delete it, and whether it is running. */
export function checkDeleter({ volume, provisioner, node, events, nowMs }: VolumeFacts): Finding | undefined {
  if (!isToBeDeleted(volume)) return undefined;
  const name = deleterOf(volume);
  if (name === '') {
    return {
      state: 'stuck',
      cause: 'no-deleter',
      message: 'The volume names no provisioner and no CSI driver, so nobody deletes its storage.',
      cure: 'Delete the storage by hand, then the PersistentVolume',
    };
  }
  if (provisioner === undefined || isInTree(name)) return undefined;
  if (node?.reading.kind === 'missing') {
    return {
      state: 'stuck',
      cause: 'no-deleter',
      message: `The volume was created on node ${node.name}. Only the provisioner of that node deletes it, and the node no longer exists.`,
      cure: 'Delete its storage by hand if there is any left, then the PersistentVolume, and remove its finalizers',
    };
  }
  const times = Object.values(deletionHistory(found(events) ?? [])).flatMap((each) =>
    each === undefined ? [] : [each.atMs],
  );
  const lastSignMs = times.length === 0 ? undefined : Math.max(...times);
  return checkServing({ provisioner, nowMs, events, lastSignMs, nobody: 'no-deleter', away: 'no-deleter' });
}

/** The volume was to be deleted long ago. */
export function checkUnattempted(facts: VolumeFacts): Finding | undefined {
  const { volume, provisioner, nowMs } = facts;
  if (!isToBeDeleted(volume)) return undefined;
  const isWithoutLease = provisioner !== undefined && found(provisioner.leases)?.length === 0;
  return {
    state: 'stuck',
    cause: 'no-deleter',
    presumes: true,
    message: `The volume was released ${durationText(nowMs - releasedAtMs(facts))} ago, and ${deleterOf(volume)} has recorded no attempt to delete its storage.`,
    cure: isWithoutLease
      ? 'Check that the provisioner runs (it has no Lease that would show it), then see its log'
      : 'See the log of the provisioner: it may have very many volumes to delete, or not take this one for its own',
  };
}
