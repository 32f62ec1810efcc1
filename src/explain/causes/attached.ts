/** The volume is attached to a node: storage that may still be in use is not deleted. Who has to detach it, and whether that is late. */
import { shellCommand } from '../../base/shell-word.ts';
import type { Attachment, ClusterNode } from '../cluster-objects.ts';
import { found, type Reading } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { attacherPrefix, finalizerCure, finalizerRemoval, type HeldObject } from '../known-finalizers.ts';
import { isReady } from '../node-labels.ts';
import { deletionHistory } from '../provisioning-events.ts';
import { retainCommand } from '../static-volumes.ts';
import { durationText, lasting } from '../texts.ts';
import { isToBeDeleted, type VolumeFacts } from '../volume-facts-reader.ts';
import { deleteCommand, hasEnded } from './holding-pods.ts';

/** From then on kube-controller-manager detaches also what a node that is not ready may still have mounted, in milliseconds. */
const forcedMs = 6 * 60_000;
/** Usually it takes seconds to detach a volume, in milliseconds. */
const usualMs = 2 * 60_000;
/** Some storage systems take minutes, in milliseconds. */
const detachMs = 5 * 60_000;

/** What holds one attachment, and what to do. */
interface Hold {
  isLate: boolean;
  /** A sentence without its full stop. */
  why: string;
  cure: string;
}

export function checkAttachments(facts: VolumeFacts): Finding | undefined {
  const { volume, attachments } = facts;
  if (attachments === undefined) return undefined;
  if (attachments.kind === 'unreadable') return { state: 'unknown', detail: attachments.why };
  const own = attachments.kind === 'found' ? attachments.value : [];
  if (own.length === 0) return { state: 'ok', detail: 'it is attached to no node' };
  const where = own.map(({ spec }) => spec?.nodeName ?? '').join(', ');
  const isHeld = volume.metadata.finalizers?.some((each) => each.startsWith(attacherPrefix)) === true;
  if (isToBeDeleted(volume) ? isPassedOver(facts) : !isHeld) {
    return { state: 'ok', detail: `it is attached to node ${where}, which does not hold it` };
  }
  const names = own.map(({ metadata }) => metadata.name).join(', ');
  const holds = own.map((each) => holdOf(each, facts));
  const hold = holds.find(({ isLate }) => isLate) ?? holds[0];
  if (hold === undefined) return undefined;
  return {
    state: hold.isLate ? 'stuck' : 'waiting',
    cause: 'attached',
    message: `The volume is still attached to node ${where} (VolumeAttachment ${names}). ${hold.why}.`,
    cure: hold.cure,
  };
}

/** A provisioner whose driver does not attach volumes has tried to delete the storage all the same. */
function isPassedOver({ events }: VolumeFacts): boolean {
  const { failed, postponed } = deletionHistory(found(events) ?? []);
  if (failed === undefined || failed.text.includes(' attached ')) return false;
  return failed.atMs > (postponed?.atMs ?? 0);
}

function holdOf(attachment: Attachment, facts: VolumeFacts): Hold {
  const { volume, attachedNodes = [], nowMs } = facts;
  const name = attachment.spec?.nodeName ?? '';
  const byPods = holdByPods(name, facts);
  if (byPods !== undefined) return byPods;
  return attachmentHold(attachment, {
    csi: volume.spec.csi,
    node: attachedNodes.find((each) => each.name === name)?.reading,
    unneededMs: nowMs - leftAtMs(volume, nowMs),
    then: 'its deletion goes on then',
    nowMs,
  });
}

/** Somebody has taken the finalizer from the claim while a Pod used it. */
function holdByPods(node: string, { volume, users, nowMs }: VolumeFacts): Hold | undefined {
  const leftMs = leftAtMs(volume, nowMs); // a later Pod uses a later claim of that name
  const pod = (found(users) ?? []).find(
    (each) =>
      each.spec?.nodeName === node && !hasEnded(each) && !(Date.parse(each.metadata.creationTimestamp ?? '') > leftMs),
  );
  if (pod === undefined) return undefined;
  const { namespace = '', name } = pod.metadata;
  const end = deleteCommand([pod], namespace);
  return {
    isLate: true,
    why: `Pod ${namespace}/${name} there names its claim ${volume.spec.claimRef?.name ?? ''}, which is gone`,
    cure: isToBeDeleted(volume)
      ? `If the data is needed, keep it first: ${retainCommand(volume.metadata.name)}. Then end the Pod, after which the volume is detached and, unless it is kept, deleted: ${end}`
      : `End the Pod, after which the volume is detached: ${end}`,
  };
}

interface KnownOfAttachment {
  csi: { driver: string; volumeHandle: string } | undefined;
  /** To which the volume is attached; undefined: it was not read. */
  node: Reading<ClusterNode> | undefined;
  /** For how long the volume has not been needed there, in milliseconds. */
  unneededMs: number;
  /** What happens once it is detached, as in `its deletion goes on then`. */
  then: string;
  nowMs: number;
}

/** Who has to detach a volume that its node no longer needs, and whether that is late. */
export function attachmentHold(attachment: Attachment, known: KnownOfAttachment): Hold {
  const isGoing = attachment.metadata.deletionTimestamp !== undefined || detachError(attachment) !== '';
  return isGoing ? holdByAttacher(attachment, known) : holdByNode(attachment, known);
}

function detachError({ status }: Attachment): string {
  return status?.detachError?.message ?? '';
}

/** It is being detached: the driver's external-attacher has to say that it is done. */
function holdByAttacher(attachment: Attachment, { node, then, unneededMs, nowMs }: KnownOfAttachment): Hold {
  const { metadata, spec } = attachment;
  const { name, deletionTimestamp = '', finalizers = [] } = metadata;
  const attacher = spec?.attacher ?? '';
  const sinceMs = deletionTimestamp === '' ? unneededMs : nowMs - Date.parse(deletionTimestamp);
  const own = finalizers.find((each) => each.startsWith(attacherPrefix)) ?? finalizers[0] ?? '';
  const held = { kind: 'volumeattachment', name, finalizers } as const;
  const error = detachError(attachment);
  if (error !== '') {
    const value = found(node);
    const isDown = value !== undefined && !isReady(value);
    const machine = isDown
      ? ` Node ${spec?.nodeName ?? ''} is not ready: start it again, or shut the machine off, which ends its use of the volume.`
      : '';
    return {
      isLate: sinceMs > usualMs,
      why: `Detaching it has failed for ${durationText(sinceMs)}, and is tried again. Last error: ${error.replace(/\.$/, '')}`,
      cure: `See the log of the driver ${attacher}.${machine}${own === '' ? '' : ` ${removal(held, own, then)}`}`,
    };
  }
  const isGone = node?.kind === 'missing';
  const isLate = sinceMs > (isGone ? usualMs : detachMs);
  const cure = own.startsWith(attacherPrefix)
    ? `Check that the driver's external-attacher runs (container csi-attacher), and see its log. ${removal(held, own, then)}`
    : finalizerCure(held, own);
  return {
    isLate,
    why: `The external-attacher of ${attacher} has had to detach it for ${durationText(sinceMs)}${isGone ? `; node ${spec?.nodeName ?? ''} does not exist` : ''}`,
    cure: isLate ? cure : lasting('Nothing: it takes a moment', cure),
  };
}

/** @param then - what happens as soon as no attachment is left. */
function removal(object: HeldObject, own: string, then: string): string {
  return `Only if the storage itself shows that the volume is attached to no node, so that nobody writes to it any more, remove the finalizer; ${then}: ${finalizerRemoval(object, own)}`;
}

/** kube-controller-manager has to begin: it waits until the node no longer has the volume mounted. */
function holdByNode({ metadata, spec }: Attachment, { csi, node: reading, unneededMs }: KnownOfAttachment): Hold {
  const name = spec?.nodeName ?? '';
  const remove = shellCommand(['kubectl', 'delete', 'volumeattachment', metadata.name]) ?? '';
  const node = found(reading);
  if (node === undefined || !isReady(node)) {
    const isLate = unneededMs > forcedMs + usualMs;
    const what = nodeText(reading);
    return {
      isLate,
      why: isLate
        ? `${what}, and kube-controller-manager has not detached the volume for ${durationText(unneededMs)}`
        : `${what}: kube-controller-manager detaches it six minutes after the last Pod is gone`,
      cure: isLate
        ? `If the machine is off or gone, so that it cannot write to the volume any more: ${remove}`
        : 'Nothing so far; sooner if the machine is certainly off: taint the node with node.kubernetes.io/out-of-service=nodeshutdown:NoExecute',
    };
  }
  const isLate = unneededMs > usualMs;
  if (isMounted(node, csi)) {
    return {
      isLate,
      why: 'The kubelet of the node says that it still uses the volume (status.volumesInUse)',
      cure: `See which Pods are left there, and the log of its kubelet: kubectl get pods --all-namespaces --field-selector spec.nodeName=${name}`,
    };
  }
  return {
    isLate,
    why: isLate
      ? `The kubelet of the node no longer uses it, and kube-controller-manager has not detached it for ${durationText(unneededMs)}`
      : 'kube-controller-manager detaches it in a moment',
    cure: isLate
      ? `Check that kube-controller-manager runs, and that no Pod there uses the volume. Then: ${remove}`
      : 'Nothing: it takes a moment',
  };
}

function nodeText(reading: Reading<ClusterNode> | undefined): string {
  if (reading?.kind === 'missing') return 'The node does not exist';
  if (reading?.kind === 'found') return 'The node is not ready';
  return `How the node is cannot be seen${reading === undefined ? '' : ` (${reading.why})`}`;
}

/** By the name under which the kubelet reports a CSI volume. */
function isMounted({ status }: ClusterNode, csi: { driver: string; volumeHandle: string } | undefined): boolean {
  if (csi === undefined) return false;
  return status?.volumesInUse?.includes(`kubernetes.io/csi/${csi.driver}^${csi.volumeHandle}`) === true;
}

/** When its claim was gone; now, where that is not known. */
export function leftAtMs({ status, metadata }: VolumeFacts['volume'], nowMs: number): number {
  return Date.parse(status?.lastPhaseTransitionTime ?? metadata.deletionTimestamp ?? '') || nowMs;
}
