/** Why a claim or volume that is to be deleted stays, or why nothing is to be deleted. */
import {
  deletedAfterText,
  deletedOnceText,
  sharedStorageText,
  untilDetachedText,
} from '../../provision/event-reasons.ts';
import { migratedToKey, provisionedByKey } from '../../provision/keys.ts';
import {
  contradictionOf,
  contradictionText,
  isForeignToDriver,
  isLeftUndone,
} from '../../provision/volume/owns-volume.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { claimName } from '../claim-name.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { isInTree } from '../provisioner-facts.ts';
import { deletionHistory, failuresText, type Recorded } from '../provisioning-events.ts';
import { checkServing } from '../serving.ts';
import { durationText } from '../time-text.ts';
import { deleterOf, isToBeDeleted, type VolumeFacts } from '../volume-facts-reader.ts';
import type { Cause } from './cause.ts';
import { heldByPods, holdersOf } from './holding-pods.ts';
import { requestMeaning } from './failure.ts';

/** The volume has a claim. */
export function checkInUse({ volume }: VolumeFacts): Finding | undefined {
  if (volume.status?.phase !== 'Bound') return undefined;
  const claim = claimName(volume);
  if (volume.metadata.deletionTimestamp === undefined) {
    return { state: 'ok', cause: 'in-use', message: `Claim ${claim} is bound to it, so nothing is to be deleted.` };
  }
  return {
    state: 'stuck',
    cause: 'in-use',
    message: `The volume is being deleted, and claim ${claim} is still bound to it.`,
    cure: 'Delete the claim if the volume is not needed',
  };
}

/** The volume is kept on purpose. */
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

const protection = 'kubernetes.io/pvc-protection';
const cloningProtection = 'provisioner.storage.kubernetes.io/cloning-protection';
/** A provisioner that has many volumes to delete may take so long before it attempts one, in milliseconds. */
const queueingMs = 60 * 60_000;

/** A claim that is being deleted stays until its finalizers are gone. */
export function checkClaimDeleted(facts: ClaimFacts): Finding | undefined {
  const { claim, pods } = facts;
  if (claim.metadata.deletionTimestamp === undefined) return undefined;
  const { finalizers = [] } = claim.metadata;
  const base = `The claim is being deleted and is held by ${finalizers.join(', ') || 'no finalizer'}`;
  if (finalizers.includes(protection)) {
    const byPods = heldByPods(base, facts);
    if (byPods !== undefined) return byPods;
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
    message: pods?.kind === 'found' && holdersOf(facts).length === 0 ? `${base}. No Pod uses it.` : `${base}.`,
    cure:
      foreign.length > 0
        ? 'The controllers that set these finalizers remove them: check that they run'
        : 'Nothing: kube-controller-manager will remove the finalizer in a moment',
  };
}

/** A call may still be creating the storage. Undefined once the time that the event names has passed. */
function checkEarlierCall({ text }: Recorded, nowMs: number): Finding | undefined {
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
function checkPostponed({ text, atMs }: Recorded, { attachments, nowMs }: VolumeFacts): Finding | undefined {
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
function releasedAtMs({ volume, nowMs }: VolumeFacts): number {
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

/** The volume is attached to a node: storage that may still be in use is not deleted. */
export function checkAttachments({ attachments }: VolumeFacts): Finding | undefined {
  if (attachments === undefined) return undefined;
  if (attachments.kind === 'unreadable') return { state: 'unknown', detail: attachments.why };
  const own = found(attachments) ?? [];
  if (own.length === 0) return { state: 'ok', detail: 'it is attached to no node' };
  const where = own.map(({ spec }) => spec?.nodeName ?? '').join(', ');
  const names = own.map(({ metadata }) => metadata.name).join(', ');
  return {
    state: 'waiting',
    cause: 'attached',
    message: `The volume is still attached to node ${where} (VolumeAttachment ${names}).`,
    cure: "Usually it is detached once its last Pod is gone. If not, check the driver's external-attacher, and whether the node still exists",
  };
}

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

/**
 * Only the provisioner itself knows which sources are its own. So its event decides, as long as it fits the volume. The API server keeps
 * events for an hour: without one only CSI drivers are judged, whose volumes have sources of their own name.
 */
export function checkOtherSource({ volume, provisioner, events }: VolumeFacts): Finding | undefined {
  if (!isLeftUndone(volume, true)) return undefined;
  const { [provisionedByKey]: provisionedBy, [migratedToKey]: migratedTo } = volume.metadata.annotations ?? {};
  const { waiting } = deletionHistory(found(events) ?? []);
  for (const name of [provisionedBy, migratedTo]) {
    const contradiction = contradictionOf(volume, (each) => each === name);
    if (name === undefined || contradiction === undefined) continue;
    const isRecorded = waiting?.text === contradictionText(volume, contradiction);
    const isDriver = provisioner?.name === name && provisioner.driver.kind === 'found';
    if (!isRecorded && !(isDriver && isForeignToDriver(volume, name))) continue;
    const { what, cure } = contradiction;
    return { state: 'stuck', cause: 'other-source', message: `The volume is left as it is: ${what}.`, cure };
  }
  return undefined;
}

/** Phase Failed: kube-controller-manager has given the volume up, which it does only for in-tree plugins. */
export function checkFailedForGood({ volume }: VolumeFacts): Finding | undefined {
  if (volume.status?.phase !== 'Failed') return undefined;
  return {
    state: 'stuck',
    cause: 'delete-error',
    message: `Deleting the volume failed, and is not retried: ${volume.status.message ?? 'without a message'}`,
    cure: 'Set its reclaim policy to Retain, so that its provisioner removes its finalizer, then delete the storage and the PersistentVolume by hand',
  };
}

/** The newest event about it: what the deletion waits for, why it was postponed, or why it failed. */
export function checkDeletion(facts: VolumeFacts): Finding | undefined {
  const { events, nowMs } = facts;
  const { failed, waiting, postponed } = deletionHistory(found(events) ?? []);
  const atLeastMs = Math.max(failed?.atMs ?? 0, postponed?.atMs ?? 0);
  if (waiting !== undefined && waiting.atMs >= atLeastMs) {
    const wait = checkSharedStorage(waiting) ?? checkEarlierCall(waiting, nowMs);
    if (wait !== undefined) return wait;
  }
  if (postponed !== undefined && postponed.atMs >= atLeastMs) {
    const wait = checkPostponed(postponed, facts);
    if (wait !== undefined) return wait;
  }
  if (failed !== undefined) {
    return {
      state: 'stuck',
      ...deletionMeaning(failed.text, failed.cause),
      message: `Its deletion ${failuresText(failed, nowMs)}; it will be retried. Last error: ${failed.text}`,
    };
  }
  return events?.kind === 'unreadable' ? { state: 'unknown', detail: events.why } : undefined;
}

/** What a failed attempt to delete the storage means. @param recorded - its cause, as the provisioner has noted it. */
export function deletionMeaning(text: string, recorded: string | undefined): { cause: Cause; cure: string } {
  const { cause, cure } = requestMeaning(text, { recorded }) ?? { cause: 'delete-error', cure: deleteErrorCure };
  return { cause, cure };
}

const deleteErrorCure = "See the log of the driver's controller, and search docs/troubleshooting.md for this text";

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
