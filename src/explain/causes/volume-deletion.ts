/** Why a volume that is to be deleted stays, or why nothing is to be deleted. */
import { shellCommand } from '../../base/shell-word.ts';
import {
  deletedAfterText,
  deletedOnceText,
  sharedStorageText,
  untilDetachedText,
} from '../../provision/event-reasons.ts';
import {
  migratedToKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  provisionedByKey,
  volumeFinalizer,
} from '../../provision/objects.ts';
import { contradictionOf, contradictionText, isForeignToDriver, isLeftUndone } from '../../provision/volume-fields.ts';
import { found } from '../cluster-reader.ts';
import type { Finding, Link } from '../explanation.ts';
import {
  controllerLateMs,
  controllerManagerCure,
  finalizerCure,
  finalizerText,
  heldFor,
  volumeProtection,
} from '../known-finalizers.ts';
import { checkServing, isInTree, seeItsPod } from '../provisioner-facts.ts';
import { deletionHistory, type Recorded } from '../provisioning-events.ts';
import { freeCommand, retainCommand, reuseCure } from '../static-volumes.ts';
import { durationText } from '../texts.ts';
import { deleterOf, isToBeDeleted, type VolumeFacts } from '../volume-facts-reader.ts';
import { failedDeletion } from './failed-deletion.ts';

/** The volume has a claim. */
export function checkInUse({ volume, claim }: VolumeFacts): Finding | undefined {
  if (volume.status?.phase !== 'Bound') return undefined;
  const name = claimName(volume);
  const uid = volume.spec.claimRef?.uid;
  const isOther = claim?.kind === 'found' && uid !== undefined && claim.value.metadata.uid !== uid;
  if (claim?.kind === 'missing' || isOther) {
    return {
      state: 'waiting',
      cause: 'in-use',
      message: `Claim ${name}, to which the volume was bound, is gone, and kube-controller-manager has not released the volume yet.`,
      cure: `Usually nothing: it takes a moment. ${controllerManagerCure}`,
    };
  }
  if (volume.metadata.deletionTimestamp === undefined) {
    return { state: 'ok', cause: 'in-use', message: `Claim ${name} is bound to it, so nothing is to be deleted.` };
  }
  return {
    state: 'stuck',
    cause: 'in-use',
    message: `The volume is being deleted, and claim ${name} is still bound to it.`,
    cure: inUseCure(volume),
    next: claim?.kind === 'found' ? linkTo(claim.value) : [],
  };
}

/** The PersistentVolume goes with its claim in any case; whether the storage does, its policy decides. */
function inUseCure(volume: VolumeFacts['volume']): string {
  const isKept = volume.spec.persistentVolumeReclaimPolicy === 'Retain';
  const base = 'A deletion cannot be taken back: the PersistentVolume goes once its claim does, and its storage';
  return isKept
    ? `${base} is kept (reclaim policy Retain). If it is needed, go on using the claim, and create the PersistentVolume again later; else delete the claim`
    : `${base} with it (reclaim policy Delete). If the data is not needed, delete the claim. If it is needed, keep it first: ${retainCommand(volume.metadata.name)}`;
}

/** A volume that is being deleted goes after its claim: what holds that one, while it is being deleted as well, holds both. */
function linkTo({ metadata: { namespace = '', name, deletionTimestamp } }: PersistentVolumeClaim): Link[] {
  const way = `The volume is being deleted and waits for claim ${namespace}/${name}`;
  return deletionTimestamp === undefined ? [] : [{ namespace, name, way }];
}

/** How long kube-controller-manager may take to empty a volume, in milliseconds. */
const recyclingMs = 10 * 60_000;

/** kube-controller-manager empties the volume and offers it again, if it can: only NFS and hostPath. */
export function checkRecycled(facts: VolumeFacts): Finding | undefined {
  const { volume, nowMs } = facts;
  const { metadata, spec, status } = volume;
  const phase = status?.phase;
  if (spec.persistentVolumeReclaimPolicy !== 'Recycle' || metadata.deletionTimestamp !== undefined) return undefined;
  if (phase !== 'Released' && phase !== 'Failed') return undefined;
  const [, users] = /^Volume is used by pods: (.*)$/.exec(newestText(facts, 'VolumeFailedRecycle')) ?? [];
  if (phase === 'Released' && users !== undefined) {
    return {
      state: 'stuck',
      cause: 'deleting',
      message: `Its claim is gone, and it is emptied once no Pod uses it any more: ${users}.`,
      cure: 'Delete those Pods',
    };
  }
  const ageMs = nowMs - releasedAtMs(facts);
  const warning = (found(facts.events) ?? []).filter(
    ({ reason, type }) => reason === 'RecyclerPod' && type === 'Warning',
  );
  if (phase === 'Released' && ageMs < recyclingMs && warning.length === 0) {
    return {
      state: 'waiting',
      cause: 'deleting',
      message: `Its claim is gone, and kube-controller-manager empties the volume with a Pod (reclaim policy Recycle).`,
      cure: 'Nothing: the volume is Available then',
    };
  }
  const why =
    phase === 'Failed'
      ? `: ${status?.message ?? 'without a message'}`
      : ` for ${durationText(ageMs)}. ${newestText(facts, 'RecyclerPod')}`.trimEnd();
  return {
    state: 'stuck',
    cause: 'delete-error',
    message: `kube-controller-manager is to empty the volume for another claim (reclaim policy Recycle), and could not${why}`,
    cure: `Only NFS and hostPath volumes can be recycled. Set another policy, to keep the data: ${retainCommand(volume.metadata.name)}. To use the volume again, then empty it by hand and remove spec.claimRef; if nobody needs it, delete the PersistentVolume`,
  };
}

function newestText({ events }: VolumeFacts, reason: string): string {
  const own = (found(events) ?? []).filter((event) => event.reason === reason);
  return own.at(-1)?.message ?? '';
}

/** The volume is kept on purpose. */
export function checkRetained({ volume, claim }: VolumeFacts): Finding | undefined {
  const phase = volume.status?.phase ?? 'Pending';
  if (isToBeDeleted(volume) || volume.metadata.deletionTimestamp !== undefined) return undefined;
  const policy = volume.spec.persistentVolumeReclaimPolicy ?? 'Retain';
  if (phase === 'Released' && found(claim) !== undefined) {
    const name = claimName(volume);
    return {
      state: 'ok',
      cause: 'retained',
      message: `The claim to which it was bound is gone, and the volume is kept: its reclaim policy is ${policy}. Claim ${name} is a later one of the same name.`,
      cure: `If the data of the volume is for that claim, which must name the volume: ${freeCommand(volume, '/spec/claimRef/uid')}`,
    };
  }
  const reserved = volume.spec.claimRef === undefined ? '' : ` It is reserved for claim ${claimName(volume)}.`;
  return {
    state: 'ok',
    cause: 'retained',
    message:
      phase === 'Released'
        ? `The claim ${claimName(volume)} is gone, and the volume is kept: its reclaim policy is ${policy}.`
        : `The volume is ${phase}: no claim was bound to it, so nothing is to be deleted.${reserved}`,
    cure:
      phase === 'Released'
        ? `If its data is not needed: delete the storage and then the PersistentVolume, or set the reclaim policy to Delete. ${reuseCure(volume)}`
        : '',
  };
}

/** A provisioner that has many volumes to delete may take so long before it attempts one, in milliseconds. */
const queueingMs = 60 * 60_000;

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
  const agoMs = nowMs - releasedAtMs(facts);
  if (!isToBeDeleted(volume) || agoMs >= queueingMs) return undefined;
  const since =
    volume.status?.lastPhaseTransitionTime === undefined ? '' : ` It was released ${durationText(agoMs)} ago.`;
  return {
    state: 'waiting',
    cause: 'deleting',
    presumes: true,
    message: `The provisioner ${deleterOf(volume)} has to delete the storage, and no attempt has failed.${since}`,
    cure: 'Nothing yet: usually it takes a moment, and with very many volumes up to an hour. If it stays like this, see the log of the provisioner',
  };
}

/** When the volume was released; now, where that is not known. */
function releasedAtMs({ volume, nowMs }: VolumeFacts): number {
  return Date.parse(volume.status?.lastPhaseTransitionTime ?? '') || nowMs;
}

/** The storage is not to be deleted, or is deleted already: something else holds the PersistentVolume. */
export function checkVolumeDeleted(facts: VolumeFacts): Finding {
  const { volume, nowMs } = facts;
  const { name, finalizers = [], deletionTimestamp = '' } = volume.metadata;
  const agoMs = nowMs - Date.parse(deletionTimestamp);
  const base = `The PersistentVolume was deleted ${durationText(agoMs)} ago`;
  if (finalizers.includes(volumeFinalizer)) return heldByProvisioner(base, facts, agoMs);
  // the one that stays for a reason of its own
  const holding = finalizers.find((each) => each !== volumeProtection) ?? finalizers[0];
  if (holding === undefined) {
    return {
      state: 'waiting',
      cause: 'deleting',
      message: `${base} and is held by no finalizer.`,
      cure: 'Nothing: it goes in a moment',
    };
  }
  const others = finalizers.filter((each) => each !== holding && each !== volumeProtection);
  const further = others.length === 0 ? '' : ` Further finalizers: ${others.join(', ')}.`;
  const isDelete = volume.spec.persistentVolumeReclaimPolicy === 'Delete';
  const isGone = isDelete && hasNoSign(deleterOf(volume), facts);
  const done = isDelete && !isGone ? 'Its provisioner is done with it, and it' : 'It';
  const left = isGone
    ? ` There is no sign of its driver ${deleterOf(volume)} in the cluster: whether its storage was deleted is not known.`
    : '';
  const cure = finalizerCure({ kind: 'pv', name, finalizers }, holding);
  return {
    ...heldFor(agoMs, isGone ? `Delete the storage with its own tools if it is not needed. ${cure}` : cure),
    cause: 'deleting',
    message: `${base}. ${done} is only held by ${finalizerText(holding)}.${further}${left}`,
  };
}

/** The provisioner removes its finalizer from a volume that is to be kept at once, and from one that is to be deleted with the storage. */
function heldByProvisioner(base: string, facts: VolumeFacts, agoMs: number): Finding {
  const { volume } = facts;
  const { persistentVolumeReclaimPolicy: policy } = volume.spec;
  const phase = volume.status?.phase ?? 'Pending';
  const deleter = deleterOf(volume);
  if (policy === 'Delete') {
    return {
      state: 'stuck',
      cause: 'deleting',
      message: `${base}, and nobody removes ${volumeFinalizer}: the provisioner does so once it has deleted the storage, which it does for Released volumes only, and this one is ${phase}.`,
      cure: `Have the storage kept, then the PersistentVolume goes; delete the storage with its own tools if it is not needed: ${retainCommand(volume.metadata.name)}`,
    };
  }
  const serving = servingOf(facts);
  if (serving !== undefined && 'cause' in serving) return serving;
  const isRecent = agoMs < controllerLateMs;
  return {
    state: isRecent ? 'waiting' : 'stuck',
    cause: 'deleting',
    presumes: true,
    message: `${base} and is held by ${volumeFinalizer}: the provisioner ${deleter} removes it from a volume whose policy is ${policy ?? 'Retain'}.`,
    cure: isRecent
      ? 'Nothing: it takes a moment'
      : `See the log of the provisioner ${deleter}: it may not be permitted to patch PersistentVolumes, or not take this one for its own`,
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
 * events for an hour: without one only CSI drivers are judged, whose volumes have sources of their own name, and names of which the
 * cluster has no sign.
 */
export function checkOtherSource(facts: VolumeFacts): Finding | undefined {
  const { volume, provisioner, events } = facts;
  if (!isLeftUndone(volume, true)) return undefined;
  const { [provisionedByKey]: provisionedBy, [migratedToKey]: migratedTo } = volume.metadata.annotations ?? {};
  const { waiting } = deletionHistory(found(events) ?? []);
  for (const name of [provisionedBy, migratedTo]) {
    const contradiction = contradictionOf(volume, (each) => each === name);
    if (name === undefined || contradiction === undefined) continue;
    const isRecorded = waiting?.text === contradictionText(volume, contradiction);
    const isForeign = isForeignToDriver(volume, name);
    const isDriver = isForeign && provisioner?.name === name && provisioner.driver.kind === 'found';
    const isNobody = isForeign && volume.spec.csi !== undefined && hasNoSign(name, facts);
    if (!isRecorded && !isDriver && !isNobody) continue;
    const { what, cure } = contradiction;
    const sign = isNobody ? ` There is no sign of ${name} in the cluster.` : '';
    return {
      ...{ state: 'stuck', cause: 'other-source' },
      message: `The volume is left as it is: ${what}.${sign}`,
      cure:
        name === provisionedBy
          ? `${isNobody ? `If ${name} is only away, start it. ` : ''}${annotationCure(volume, cure)}`
          : cure,
    };
  }
  return undefined;
}

function hasNoSign(name: string, facts: VolumeFacts): boolean {
  const serving = facts.provisioner?.name === name ? servingOf(facts) : undefined;
  return serving !== undefined && 'cause' in serving && serving.message.startsWith('There is no sign ');
}

/** @param otherwise - what to do if the annotation is right. */
function annotationCure({ metadata, spec }: VolumeFacts['volume'], otherwise: string): string {
  if (spec.csi === undefined) return otherwise;
  const words = ['kubectl', 'annotate', 'pv', metadata.name, `${provisionedByKey}=${spec.csi.driver}`, '--overwrite'];
  const command = shellCommand(words);
  const rest = otherwise.replace(/^Correct the annotation, or /, '');
  return command === undefined
    ? otherwise
    : `If the storage is to be kept, ${rest}. If its driver is to delete it, correct the annotation: ${command}`;
}

/** Phase Failed: kube-controller-manager is to delete the storage, and knows no way, or fails. */
export function checkFailedForGood({ volume }: VolumeFacts): Finding | undefined {
  const { metadata, spec, status } = volume;
  if (status?.phase !== 'Failed') return undefined;
  const text = status.message ?? 'without a message';
  const held = { state: 'stuck', cause: 'delete-error' } as const;
  if (spec.csi !== undefined && !isInTree(deleterOf(volume))) {
    return {
      ...held,
      message: `The volume is Failed, and its provisioner deletes only those that are Released: ${text}`,
      cure: `Have the provisioner delete the storage: kubectl patch pv ${metadata.name} --subresource=status --type=merge -p '{"status":{"phase":"Released"}}'`,
    };
  }
  const isUnknown = /no (deletable )?volume plugin matched/.test(text);
  return {
    ...held,
    message: isUnknown
      ? `Nobody deletes storage of this kind: neither kube-controller-manager nor a provisioner knows how. (${text})`
      : `kube-controller-manager could not delete the storage, and tries again at least every few minutes: ${text}`,
    cure: `Delete the storage by hand, if it is not needed, and then the PersistentVolume. So that it goes, first: ${retainCommand(volume.metadata.name)}`,
  };
}

/** The newest event about it: what the deletion waits for, why it was postponed, or why it failed. */
export function checkDeletion(facts: VolumeFacts): Finding | undefined {
  const { volume, events, nowMs } = facts;
  if (!isToBeDeleted(volume)) return undefined; // events of an earlier failure may be there still
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
  if (failed !== undefined) return failedDeletion(failed, facts);
  return events?.kind === 'unreadable' ? { state: 'unknown', detail: events.why } : undefined;
}

/** Of a name of which there is no sign, the cure is not that of a claim: classes have nothing to do with it. */
function servingOf({ volume, provisioner, events, nowMs }: VolumeFacts): Finding | undefined {
  if (provisioner === undefined || isInTree(provisioner.name)) return undefined;
  const times = Object.values(deletionHistory(found(events) ?? [])).flatMap((each) =>
    each === undefined ? [] : [each.atMs],
  );
  const lastSignMs = times.length === 0 ? undefined : Math.max(...times);
  const serving = checkServing({ provisioner, nowMs, events, lastSignMs, nobody: 'no-deleter', away: 'no-deleter' });
  if (!('cause' in serving) || !serving.message.startsWith('There is no sign ')) return serving;
  const { name } = volume.metadata;
  return {
    ...serving,
    cure: `${seeItsPod} Otherwise install the driver with its provisioner, so that it deletes the storage. If it is gone for good, delete the storage with its own tools and the PersistentVolume with: ${goneCommand(name)}`,
  };
}

/** Of a volume whose provisioner will never come back. */
function goneCommand(name: string): string {
  return `kubectl patch pv ${name} --type=merge -p '{"metadata":{"finalizers":null}}' && kubectl delete pv ${name}`;
}

/** The provisioner that has to delete it, and whether it is running. */
export function checkDeleter(facts: VolumeFacts): Finding | undefined {
  const { volume, provisioner, node } = facts;
  if (!isToBeDeleted(volume)) return undefined;
  const name = deleterOf(volume);
  if (name === '') {
    return {
      state: 'stuck',
      cause: 'no-deleter',
      message: 'The volume names no provisioner and no CSI driver, so nobody deletes its storage.',
      cure: `Delete the storage by hand, if it is not needed, then the PersistentVolume: kubectl delete pv ${volume.metadata.name}`,
    };
  }
  if (provisioner !== undefined && node?.reading.kind === 'missing') {
    return {
      state: 'stuck',
      cause: 'no-deleter',
      message: `The volume was created on node ${node.name}. Only the provisioner of that node deletes it, and the node no longer exists.`,
      cure: `Delete its storage by hand if there is any left, then the PersistentVolume with: ${goneCommand(volume.metadata.name)}`,
    };
  }
  return servingOf(facts);
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

/** The claim that a volume is for, as `NAMESPACE/NAME`. */
export function claimName({ spec }: PersistentVolume): string {
  return `${spec.claimRef?.namespace ?? ''}/${spec.claimRef?.name ?? ''}`;
}
