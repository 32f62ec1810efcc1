/** The steps of a volume that is to be deleted. */
import { deletedAfterText, deletedOnceText, sharedStorageText } from '../provision/event-reasons.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import { found } from './cluster-reader.ts';
import type { Finding } from './explanation.ts';
import { deletionHistory, failuresText, type Recorded } from './provisioning-events.ts';
import { isInTree } from './provisioner-facts.ts';
import { lookAtServing } from './provisioner-steps.ts';
import { durationText } from './time-text.ts';
import { deleterOf, isToBeDeleted, type VolumeFacts } from './volume-facts-reader.ts';

/** A provisioner that has many volumes to delete may take so long before it attempts one, in milliseconds. */
const queueingMs = 60 * 60_000;

/** Phase and policy: whether anything is to be deleted at all. */
export function lookAtVolumeState({ volume }: VolumeFacts): Finding {
  const phase = volume.status?.phase ?? 'Pending';
  if (isToBeDeleted(volume)) return { state: 'ok', detail: `it is ${phase}, and its policy is Delete` };
  if (phase === 'Bound') return boundVolume(volume);
  const held = volume.metadata.deletionTimestamp !== undefined;
  if (held) return { state: 'ok', detail: `it is ${phase} and is being deleted` };
  const policy = volume.spec.persistentVolumeReclaimPolicy ?? 'Retain';
  return {
    state: 'ok',
    cause: 'retained',
    message:
      phase === 'Released'
        ? `The claim ${claimName(volume)} is gone, and the volume is kept: its policy is ${policy}.`
        : `The volume is ${phase}: no claim was bound to it, so nothing is to be deleted.`,
    cure:
      phase === 'Released'
        ? 'If its data is not needed: delete the storage and then the PersistentVolume, or set the policy to Delete'
        : '',
  };
}

function boundVolume(volume: PersistentVolume): Finding {
  const claim = claimName(volume);
  if (volume.metadata.deletionTimestamp === undefined) {
    return { state: 'ok', cause: 'in-use', message: `Claim ${claim} is bound to it, so nothing is to be deleted.` };
  }
  return {
    state: 'waiting',
    cause: 'in-use',
    message: `The volume is being deleted, and claim ${claim} is still bound to it.`,
    cure: 'Delete the claim, if the volume is to go',
  };
}

function claimName({ spec }: PersistentVolume): string {
  return `${spec.claimRef?.namespace ?? ''}/${spec.claimRef?.name ?? ''}`;
}

/** Storage that may still be in use on a node is not deleted. */
export function lookAtAttachments({ attachments }: VolumeFacts): Finding | undefined {
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

/** The provisioner that has to delete it, and whether it is running. */
export function lookAtDeleter({ volume, provisioner, node, events, nowMs }: VolumeFacts): Finding | undefined {
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
  const { failed, waiting } = deletionHistory(found(events) ?? []);
  const times = [failed, waiting].flatMap((each) => (each === undefined ? [] : [each.atMs]));
  const lastSignMs = times.length === 0 ? undefined : Math.max(...times);
  return lookAtServing({ provisioner, nowMs, events, lastSignMs, nobody: 'no-deleter', away: 'no-deleter' });
}

/** What the driver answered, and which finalizers hold it. */
export function lookAtDeletion(facts: VolumeFacts): Finding {
  const { volume, events, nowMs } = facts;
  const { finalizers = [], deletionTimestamp } = volume.metadata;
  if (volume.status?.phase === 'Failed') {
    return {
      state: 'stuck',
      cause: 'delete-error',
      message: `Deleting the volume failed for good: ${volume.status.message ?? 'without a message'}`,
      cure: 'Set its policy to Retain, so that its provisioner removes its finalizer, then delete the storage and the PersistentVolume by hand',
    };
  }
  const { failed, waiting } = deletionHistory(found(events) ?? []);
  if (waiting !== undefined && waiting.atMs >= (failed?.atMs ?? 0)) {
    const wait = sharedStorage(waiting) ?? earlierCall(waiting, nowMs);
    if (wait !== undefined) return wait;
  }
  if (failed !== undefined) {
    return {
      state: 'stuck',
      cause: 'delete-error',
      message: `Deleting the storage ${failuresText(failed, nowMs)}; it will be retried. Last error: ${failed.text}`,
      cure: "See the log of the driver's controller, and docs/troubleshooting.md for this text",
    };
  }
  if (events?.kind === 'unreadable') return { state: 'unknown', detail: events.why };
  if (isToBeDeleted(volume)) return unattempted(facts);
  return {
    state: finalizers.length === 0 ? 'waiting' : 'stuck',
    cause: 'deleting',
    message: `The PersistentVolume was deleted ${durationText(nowMs - Date.parse(deletionTimestamp ?? ''))} ago and is held by ${finalizers.join(', ') || 'no finalizer'}.`,
    cure: 'The controllers that set the finalizers remove them: check that they run',
  };
}

/** Of what is left of an attachment, the step before has said whether it is still there. */
function sharedStorage({ text }: Recorded): Finding | undefined {
  const [, other] = new RegExp(`${sharedStorageText} (\\S+), which `).exec(text) ?? [];
  if (other === undefined) return undefined;
  const isKept = text.endsWith('is not to be deleted');
  return {
    state: isKept ? 'stuck' : 'waiting',
    cause: 'shared-storage',
    message: `PersistentVolume ${other} has the same storage, and nothing is deleted while it exists.`,
    cure: isKept
      ? `If ${other} is to keep the storage, set the policy of this volume to Retain and delete it; else delete ${other}`
      : `See why ${other} stays: csi-provisioner why pv/${other}`,
  };
}

/** A call may still be creating the storage. Undefined once the moment that the event names has passed. */
function earlierCall({ text }: Recorded, nowMs: number): Finding | undefined {
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

/** No attempt has failed: either it is being deleted, or nobody does it. Kubernetes before 1.29 does not say since when. */
function unattempted({ volume, provisioner, nowMs }: VolumeFacts): Finding {
  const name = deleterOf(volume);
  const sinceMs = Date.parse(volume.status?.lastPhaseTransitionTime ?? '') || nowMs;
  const agoMs = nowMs - sinceMs;
  if (agoMs < queueingMs) {
    return {
      state: 'waiting',
      cause: 'deleting',
      presumes: true,
      message: `The provisioner ${name} has to delete the storage, and no attempt has failed.`,
      cure: 'Usually nothing: it takes a moment. If it stays like this, see the log of the provisioner',
    };
  }
  const isWithoutLease = provisioner !== undefined && found(provisioner.leases)?.length === 0;
  return {
    state: 'stuck',
    cause: 'no-deleter',
    presumes: true,
    message: `The volume was released ${durationText(agoMs)} ago, and ${name} has recorded no attempt to delete its storage.`,
    cure: isWithoutLease
      ? 'Check that the provisioner runs (it has no Lease that would show it), then see its log'
      : 'See the log of the provisioner: it may have very many volumes to delete, or not count this one as its own',
  };
}
