/** A Pod of a bound claim that has a node and does not start there. */
import { shellWord } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { claimsOf, type ClusterNode, type Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import { isReady } from '../node-labels.ts';
import { detaching, multiAttach, unmountedIn } from '../pod-facts-reader.ts';
import { type Recorded, recordedOf } from '../provisioning-events.ts';
import { durationText, quotedError } from '../texts.ts';
import { attachmentHold } from './attached.ts';
import type { Hint } from './cause.ts';
import { describeCommand, holderHint, notReadyCure, notReadyText } from './holding-pods.ts';
import { attacherCure, nodeErrorCure } from './node-error.ts';
import { containerHint } from './pod-containers.ts';

/** The reasons of kube-controller-manager and of kubelets for which a volume is not where its Pod is. */
const volumeReasons = new Set(['FailedAttachVolume', 'FailedMount', 'FailedMapVolume']);
/** Of a kubelet that changes the owner of all files for `fsGroup`, which takes long with many. */
const ownersReason = 'VolumePermissionChangeInProgress';
/** An attacher that works has attached a volume by then, in milliseconds. */
const attachedWithinMs = 2 * 60_000;
/** What goes on failing is tried again, and recorded, in this time, in milliseconds; that a volume has another node is recorded once. */
const repeatedWithinMs = 10 * 60_000;

/** It has a node, and its volume is not there. */
export function placedHint(pod: Pod, node: string, facts: ClaimFacts): Hint | undefined {
  const { claim, hanging, nowMs, podNodes } = facts;
  const own = found(podNodes?.get(node));
  if (own !== undefined && !isReady(own)) {
    return {
      text: `cannot start: its node ${node} is ${notReadyText(own)}, so that nothing starts there.`,
      cure: notReadyCure(own),
    };
  }
  const { volumeName = '' } = claim.spec;
  const all = found(hanging?.events) ?? [];
  const about = all.filter(
    ({ reason = '', message = '' }) => volumeReasons.has(reason) && message.includes(`"${volumeName}"`),
  );
  const newest = recordedOf(about);
  const over = recordedOf(all.filter(({ reason = '', message = '' }) => isOver(reason, message, volumeName)));
  const owners = recordedOf(all.filter(({ reason }) => reason === ownersReason));
  if (owners !== undefined && owners.atMs > Math.max(over?.atMs ?? 0, newest?.atMs ?? 0)) {
    return {
      text: `does not start yet on node ${node}: for ${durationText(nowMs - owners.sinceMs)} its kubelet has been changing the ownership of all files of the volume. Last event: ${owners.text}`,
      cure: 'Wait. To skip it where the root directory has the right owner already, set fsGroupChangePolicy: OnRootMismatch in the securityContext of the Pod',
    };
  }
  if (newest === undefined || (over?.atMs ?? 0) >= newest.atMs) {
    return (
      attachmentHint(node, facts) ?? otherHint(pod, node, facts) ?? silentHint(pod, { node, last: newest, over }, facts)
    );
  }
  const ago = durationText(nowMs - newest.atMs);
  const base = `cannot start on node ${node}`;
  if (newest.text.startsWith(multiAttach)) {
    const holder = found(hanging?.holders)?.[0];
    if (holder === undefined)
      return elsewhereHint(base, { sinceMs: newest.sinceMs, text: `${ago} ago: ${newest.text}` }, facts);
    const why = `${base}: the volume is attached to node ${holder.spec?.nodeName ?? ''}, where Pod ${holder.metadata.name} uses it`;
    return holderHint(why, { holder, pod }, facts);
  }
  if (nowMs - newest.atMs > repeatedWithinMs)
    return attachmentHint(node, facts) ?? silentHint(pod, { node, last: newest, over }, facts);
  if (newest.text.includes(detaching)) return detachingHint(base, node, facts);
  const isAttach = about.some(({ reason, message }) => reason === 'FailedAttachVolume' && message === newest.text);
  return {
    text: `${base}: its volume cannot be ${isAttach ? 'attached' : 'mounted'}. Last error, ${ago} ago: ${newest.text}`,
    cure: nodeErrorCure(newest.text, { node, taints: taintsOf(own), isAttach, volume: found(facts.volume) }),
  };
}

/** Those for which a Pod needs a toleration. */
function taintsOf(node: ClusterNode | undefined): string[] {
  const all = node?.spec?.taints?.filter(({ effect }) => effect !== 'PreferNoSchedule') ?? [];
  return all.map(({ key, effect }) => `${key}:${effect}`);
}

/** A Pod that starts at all has done so by then, in milliseconds, or its kubelet says what it waits for. */
const startedWithinMs = 10 * 60_000;

/** Nobody says anything any more, and the Pod does not start. @param known.over - its volumes are mounted. */
function silentHint(
  pod: Pod,
  { node, last, over }: { node: string; last: Recorded | undefined; over: Recorded | undefined },
  { volume, hanging, nowMs }: ClaimFacts,
): Hint | undefined {
  const placed = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'True');
  const waitsMs = nowMs - Date.parse(placed?.lastTransitionTime ?? '');
  if (over !== undefined || hanging?.events?.kind !== 'found' || !(waitsMs > startedWithinMs)) return undefined;
  if (pod.status?.initContainerStatuses?.some(({ state }) => state?.running !== undefined) === true) return undefined;
  const base = `has not started on node ${node} in ${durationText(waitsMs)}`;
  if (last === undefined)
    return { text: `${base}, and no event says why.`, cure: `See the log of its kubelet: ${describeCommand(pod)}` };
  const where = { node, isAttach: last.text.startsWith('AttachVolume'), volume: found(volume) };
  return {
    text: `${base}. Last error of its volume, ${durationText(nowMs - last.atMs)} ago: ${quotedError(last.text)}`,
    cure: `${nodeErrorCure(last.text, where)}. As nothing was recorded since then, see also the log of the kubelet: ${describeCommand(pod)}`,
  };
}

/** The volume is attached to a node on which kube-controller-manager knows no Pod that uses it. */
function elsewhereHint(
  base: string,
  { sinceMs, text }: { sinceMs: number; text: string },
  { hanging, volume, nowMs }: ClaimFacts,
): Hint {
  const { attachment, node } = hanging?.elsewhere ?? {};
  if (attachment === undefined) {
    return {
      text: `${base}: the volume is attached to another node. kube-controller-manager ${text}`,
      cure: 'It is detached once that node no longer has it mounted. See which node that is: kubectl get volumeattachments',
    };
  }
  const { why, cure } = attachmentHold(attachment, {
    csi: found(volume)?.spec.csi,
    node,
    unneededMs: nowMs - sinceMs,
    then: 'the volume can then be attached to the node of the Pod',
    nowMs,
  });
  return {
    text: `${base}: the volume is still attached to node ${attachment.spec?.nodeName ?? ''} (VolumeAttachment ${attachment.metadata.name}). ${why}.`,
    cure,
  };
}

/** Failures of another volume before they count. */
const minMisses = 3;
const sandboxReason = 'FailedCreatePodSandBox';
/** What a kubelet records of a Pod once it has its sandbox, for which all its volumes must be mounted. */
const beyondSandbox = new Set(['Pulling', 'Pulled', 'Created', 'Started']);
const beyondVolumes = new Set([...beyondSandbox, sandboxReason]);

/** The Pod does not start for something that has nothing to do with the claim. */
function otherHint(pod: Pod, node: string, facts: ClaimFacts): Hint | undefined {
  const { claim, hanging, nowMs } = facts;
  const { namespace = '' } = pod.metadata;
  const waits = containerHint(pod, node, { claim, volume: found(facts.volume) });
  if (waits !== undefined) return waits;
  const all = found(hanging?.events) ?? [];
  const sandbox = recordedOf(all.filter(({ reason }) => reason === sandboxReason));
  const created = recordedOf(all.filter(({ reason = '' }) => beyondSandbox.has(reason)));
  if (sandbox !== undefined && sandbox.atMs > (created?.atMs ?? 0) && nowMs - sandbox.atMs <= repeatedWithinMs) {
    return {
      text: `does not start on node ${node}, for a reason other than this claim: the kubelet cannot create its sandbox. Last error, ${durationText(nowMs - sandbox.atMs)} ago: ${sandbox.text}`,
      cure: `Usually that is the network plugin (CNI) of the node: do what the error says, and see its Pod on node ${node}`,
    };
  }
  const own = `"${claim.spec.volumeName ?? ''}"`;
  const mounts = recordedOf(
    all.filter(({ reason, message = '' }) => reason === 'FailedMount' && !message.includes(own)),
  );
  const over = recordedOf(all.filter(({ reason = '' }) => beyondVolumes.has(reason)));
  // one or two are usual while the kubelet learns of a new Pod
  if (mounts === undefined || mounts.count < minMisses || nowMs - mounts.atMs > repeatedWithinMs) return undefined;
  if ((over?.atMs ?? 0) >= mounts.atMs) return undefined;
  const missing = unmountedIn(mounts.text);
  const claims = claimsOf(pod).filter(({ volume }) => missing.includes(volume));
  if (claims.some((each) => each.name === claim.metadata.name)) return unmountedHint(node, mounts, facts);
  // that of one volume says more than that of all which are missing
  const one = recordedOf(
    all.filter(({ message = '' }) => missing.some((each) => message.includes(`for volume "${each}"`))),
  );
  const other = claims[0]?.name;
  return {
    text: `does not start on node ${node}, for a reason other than this claim: another of its volumes cannot be mounted. Last error, ${durationText(nowMs - (one ?? mounts).atMs)} ago: ${(one ?? mounts).text}`,
    cure:
      other === undefined
        ? `Create what it names, such as a ConfigMap or a Secret, or correct the Pod: ${describeCommand(pod)}`
        : `Look at the claim of that volume: csi-provisioner why ${shellWord(`${namespace}/${other}`) ?? 'NAMESPACE/CLAIM'}`,
  };
}

/** What a kubelet says of volumes where it has just waited. */
const onlyWaited = /^(?:timed out waiting for the condition|context (?:deadline exceeded|canceled))$/;

/** The kubelet names the volume among those that it waits for, and nobody says why. */
function unmountedHint(node: string, { atMs, text }: Recorded, { volume, hanging, nowMs }: ClaimFacts): Hint {
  const [, error = ''] = /failed to process volumes=\[[^\]]*\]: (.+)$/s.exec(text) ?? [];
  if (error !== '' && !onlyWaited.test(error)) {
    return {
      text: `cannot start on node ${node}: its kubelet cannot use the volume. Last error, ${durationText(nowMs - atMs)} ago: ${error}`,
      cure: nodeErrorCure(error, { node, isAttach: false, volume: found(volume) }),
    };
  }
  const same = sameHandleHint(node, { volume: found(volume), hanging });
  if (same !== undefined) return same;
  const isAttached = found(hanging?.attachment)?.status?.attached === true;
  const isCsi = found(volume)?.spec.csi !== undefined;
  return {
    text: `does not start on node ${node}: its volume is ${isAttached ? 'attached but ' : ''}not mounted, and no event names an error. Last event, ${durationText(nowMs - atMs)} ago: ${text}`,
    cure: isCsi
      ? `See the log of the driver's node plugin on node ${node}${isAttached ? '' : ', and whether the volume is attached: kubectl get volumeattachments'}`
      : `See the log of the kubelet on node ${node}, and whether the node reaches the storage`,
  };
}

/** To a kubelet two PersistentVolumes of one driver with the same volumeHandle are one volume, which it mounts once. */
function sameHandleHint(
  node: string,
  { volume, hanging }: { volume: PersistentVolume | undefined; hanging: ClaimFacts['hanging'] },
): Hint | undefined {
  const other = found(hanging?.siblingVolume);
  const [own, others] = [volume?.spec.csi, other?.spec.csi];
  if (volume === undefined || other === undefined || own === undefined || others === undefined) return undefined;
  if (own.driver !== others.driver || own.volumeHandle !== others.volumeHandle) return undefined;
  const claim = hanging?.sibling?.metadata.name ?? '';
  return {
    text: `cannot start on node ${node}: PersistentVolumes ${volume.metadata.name} and ${other.metadata.name} (claim ${claim}) have the same volumeHandle, ${shortValue(own.volumeHandle)}, so that its kubelet takes them for one volume and mounts it once.`,
    cure: `Give each PersistentVolume its own volumeHandle: set persistentVolumeReclaimPolicy Retain on one, so that no data is lost, then delete it and create it again; or mount claim ${claim} twice, with subPath`,
  };
}

/** Whether an event says that the volume is attached, or that its Pod has got beyond its volumes. */
function isOver(reason: string, message: string, volumeName: string): boolean {
  if (reason === 'SuccessfulAttachVolume') return message.includes(`"${volumeName}"`);
  return beyondVolumes.has(reason);
}

/** The volume is attached anew only once it is detached, for which the attacher says why it fails. */
function detachingHint(base: string, node: string, { hanging, volume, podNodes, nowMs }: ClaimFacts): Hint {
  const attachment = found(hanging?.attachment);
  const text = `${base}: the volume is being detached from it first`;
  if (attachment === undefined) return { text: `${text}, which does not end.`, cure: attacherCure };
  const { why, cure } = attachmentHold(attachment, {
    csi: found(volume)?.spec.csi,
    node: podNodes?.get(node),
    unneededMs: 0,
    then: 'the volume is then attached again',
    nowMs,
  });
  return { text: `${text} (VolumeAttachment ${attachment.metadata.name}). ${why}.`, cure };
}

/** No event says why; the attacher writes it into the VolumeAttachment. */
function attachmentHint(node: string, { hanging, volume, nowMs }: ClaimFacts): Hint | undefined {
  const attachment = found(hanging?.attachment);
  if (attachment?.status === undefined || attachment.status.attached === true) return undefined;
  const { name, creationTimestamp } = attachment.metadata;
  const message = attachment.status.attachError?.message;
  const base = `cannot start on node ${node}`;
  if (message !== undefined) {
    return {
      text: `${base}: its volume cannot be attached. Last error: ${message}`,
      cure: nodeErrorCure(message, { node, isAttach: true, volume: found(volume) }),
    };
  }
  const ageMs = nowMs - Date.parse(creationTimestamp ?? '');
  if (!(ageMs > attachedWithinMs)) return undefined;
  const attacher = attachment.spec?.attacher ?? '';
  return {
    text: `${base}: VolumeAttachment ${name} asks the external-attacher of ${attacher} to attach the volume, and nothing has happened for ${durationText(ageMs)}.`,
    cure: `${attacherCure}: kubectl get csidriver ${attacher} -o yaml`,
  };
}
