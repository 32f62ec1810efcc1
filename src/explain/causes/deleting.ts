/** The claim or volume is being deleted, and something holds it. */
import { nameList } from '../../base/name-list.ts';
import { deletedAfterText, deletedOnceText, untilDetachedText } from '../../provision/event-reasons.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import type { Recorded } from '../provisioning-events.ts';
import { durationText } from '../time-text.ts';
import { deleterOf, isToBeDeleted, type VolumeFacts } from '../volume-facts-reader.ts';
import { defineCause } from './cause.ts';

export const deleting = defineCause({ name: 'deleting' });

const protection = 'kubernetes.io/pvc-protection';
const cloningProtection = 'provisioner.storage.kubernetes.io/cloning-protection';
/** Pods in a message: more are counted. */
const maxNamed = 5;
/** A provisioner that has many volumes to delete may take so long before it attempts one, in milliseconds. */
const queueingMs = 60 * 60_000;

/** A claim that is being deleted stays until its finalizers are gone. */
export function checkClaimDeleted({ claim, pods }: ClaimFacts): Finding | undefined {
  if (claim.metadata.deletionTimestamp === undefined) return undefined;
  const { finalizers = [] } = claim.metadata;
  const base = `The claim is being deleted and is held by ${finalizers.join(', ') || 'no finalizer'}`;
  // kube-controller-manager does not wait for Pods without a node: none is given to them while the claim is being deleted
  const using = (found(pods) ?? [])
    .filter(({ spec }) => (spec?.nodeName ?? '') !== '')
    .map(({ metadata }) => metadata.name);
  if (finalizers.includes(protection)) {
    if (using.length > 0) {
      return {
        state: 'stuck',
        cause: 'deleting',
        message: `${base}, because it is used by Pod ${nameList(using, maxNamed)}.`,
        cure: 'Delete the Pods that use it',
      };
    }
    if (pods?.kind === 'unreadable') {
      return {
        state: 'stuck',
        cause: 'deleting',
        message: `${base}, usually because a Pod uses it; which one cannot be seen: ${pods.why}.`,
        cure: 'Delete the Pods that use it',
      };
    }
  }
  if (finalizers.includes(cloningProtection)) {
    return {
      state: 'waiting',
      cause: 'deleting',
      message: `${base}, because it is the source of a clone that is pending or in progress.`,
      cure: 'Wait until the clone is complete. The event CloneProtectionWaiting on this claim names the other one. If provisioning of the other claim keeps failing, delete that one, since no clone is begun once its source is being deleted; if it no longer exists, run csi-provisioner journal list',
    };
  }
  const foreign = finalizers.filter((finalizer) => finalizer !== protection);
  return {
    state: foreign.length > 0 ? 'stuck' : 'waiting',
    cause: 'deleting',
    message: pods?.kind === 'found' && using.length === 0 ? `${base}. No Pod uses it.` : `${base}.`,
    cure:
      foreign.length > 0
        ? 'The controllers that set these finalizers remove them: check that they run'
        : 'Nothing: kube-controller-manager will remove the finalizer in a moment',
  };
}

/** A call may still be creating the storage. Undefined once the time that the event names has passed. */
export function checkEarlierCall({ text }: Recorded, nowMs: number): Finding | undefined {
  const [, end] = new RegExp(`${deletedAfterText} (\\S+): `).exec(text) ?? [];
  const isWaiting = end === undefined ? text.includes(deletedOnceText) : Date.parse(end) > nowMs;
  if (!isWaiting) return undefined;
  return {
    state: 'waiting',
    cause: 'deleting',
    message: `A call may still be creating the storage: it is deleted ${end === undefined ? 'once that call has ended' : `after ${end}`}.`,
    cure: 'Nothing to do: the provisioner deletes it then',
  };
}

/** The provisioner said that the volume is in use. Undefined where it was attached to a node then, and is no longer. */
export function checkPostponed({ text, atMs }: Recorded, { attachments, nowMs }: VolumeFacts): Finding | undefined {
  const isDetached = attachments !== undefined && found(attachments)?.length === 0;
  if (isDetached && text.endsWith(untilDetachedText)) return undefined;
  return {
    state: 'waiting',
    cause: 'deleting',
    message: `Its deletion was postponed ${durationText(nowMs - atMs)} ago; it will be retried. Reason: ${text}`,
    cure: 'Usually nothing: it is deleted once it is no longer in use. If it stays like this, see the log of the provisioner',
  };
}

/** No attempt to delete the storage has failed, and the provisioner has had little time. Kubernetes before 1.29 does not say how much. */
export function checkDeletionBegins(facts: VolumeFacts): Finding | undefined {
  const { volume, nowMs } = facts;
  if (!isToBeDeleted(volume) || nowMs - releasedAtMs(facts) >= queueingMs) return undefined;
  return {
    state: 'waiting',
    cause: 'deleting',
    presumes: true,
    message: `The provisioner ${deleterOf(volume)} has to delete the storage, and no attempt has failed.`,
    cure: 'Usually nothing: it takes a moment. If it stays like this, see the log of the provisioner',
  };
}

/** When the volume was released; now, where that is not known. */
export function releasedAtMs({ volume, nowMs }: VolumeFacts): number {
  return Date.parse(volume.status?.lastPhaseTransitionTime ?? '') || nowMs;
}

/** The storage is not to be deleted, or is deleted already. */
export function checkVolumeDeleted({ volume, nowMs }: VolumeFacts): Finding {
  const { finalizers = [], deletionTimestamp } = volume.metadata;
  return {
    state: finalizers.length === 0 ? 'waiting' : 'stuck',
    cause: 'deleting',
    message: `The PersistentVolume was deleted ${durationText(nowMs - Date.parse(deletionTimestamp ?? ''))} ago and is held by ${finalizers.join(', ') || 'no finalizer'}.`,
    cure: 'The controllers that set the finalizers remove them: check that they run',
  };
}
