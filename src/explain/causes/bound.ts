/** A bound claim, and why a Pod that uses it does not start: the claim has what it asked for, so that is a hint. */
import { nameList } from '../../base/name-list.ts';
import { shellCommand, shellWord } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { claimsOf, type ClusterNode, isBlockedBy, type Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { attacherPrefix, finalizerRemoval } from '../known-finalizers.ts';
import { barrierOf, fitsOne, isForNode, isReady, maxNamed, termsOf, termText, valuesOn } from '../node-labels.ts';
import { type HangingPod, multiAttach } from '../pod-facts-reader.ts';
import { type Recorded, recordedOf } from '../provisioning-events.ts';
import {
  claimIn,
  isAwaited,
  isForScheduler,
  refusalOf,
  refused,
  schedulingCure,
  silentForMs,
} from '../scheduler-words.ts';
import { durationText, quotedError } from '../texts.ts';
import { attachmentHold } from './attached.ts';
import { checkAttributesModified, checkSourceDropped } from './attributes-class.ts';
import { checkBound } from './claim.ts';
import { checkExpansion } from './expansion.ts';
import { attacherCure, nodeErrorCure } from './node-error.ts';
import { creatorOf, deleteCommand, notReadyCure, notReadyText, wayToEnd } from './holding-pods.ts';
import { isOutdated, waitsForScheduler } from './pod.ts';

interface Hint {
  /** Goes on after `Pod p, which uses it, `. */
  text: string;
  cure: string;
}

/** The reasons of kube-controller-manager and of kubelets for which a volume is not where its Pod is. */
const volumeReasons = new Set(['FailedAttachVolume', 'FailedMount', 'FailedMapVolume']);
/** Of a kubelet that changes the owner of all files for `fsGroup`, which takes long with many. */
const ownersReason = 'VolumePermissionChangeInProgress';
/** An attacher that works has attached a volume by then, in milliseconds. */
const attachedWithinMs = 2 * 60_000;
/** What goes on failing is tried again, and recorded, in this time, in milliseconds; that a volume has another node is recorded once. */
const repeatedWithinMs = 10 * 60_000;

/** A bound claim whose Pods start, as far as is known. */
export function checkUnhindered(facts: ClaimFacts): Finding | undefined {
  const isHindered = [checkPodsReadable, checkHangingPod, checkExpansion].some((check) => check(facts) !== undefined);
  return isHindered ? undefined : (checkAttributesModified(facts) ?? checkSourceDropped(facts) ?? checkBound(facts));
}

/** Where the Pods, or the events about one, could not be read, that the claim is bound is all that is known. */
export function checkPodsReadable(facts: ClaimFacts): Finding | undefined {
  const { claim, pods, hanging } = facts;
  const unread = [pods, hanging?.events].find((reading) => reading?.kind === 'unreadable');
  if (claim.status?.phase !== 'Bound' || unread?.kind !== 'unreadable') return undefined;
  if (hanging !== undefined && hintOf(hanging.pod, facts) !== undefined) return undefined;
  return { state: 'unknown', detail: `whether a Pod that uses it starts is not visible: ${unread.why}` };
}

/** Why the Pod that uses the claim does not start. */
export function checkHangingPod(facts: ClaimFacts): Finding | undefined {
  const { claim, hanging } = facts;
  if (claim.status?.phase !== 'Bound' || hanging === undefined) return undefined;
  const hint = hintOf(hanging.pod, facts);
  if (hint === undefined) return undefined;
  return {
    state: 'ok',
    stepState: 'stuck',
    cause: 'bound',
    message: `The claim is bound to PersistentVolume ${claim.spec.volumeName ?? ''}, and Pod ${hanging.pod.metadata.name}, which uses it, ${hint.text}`,
    cure: hint.cure,
  };
}

function hintOf(pod: Pod, facts: ClaimFacts): Hint | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return endHint(pod, facts);
  const node = pod.spec?.nodeName ?? '';
  if (node !== '') return startHint(pod, node, facts);
  const refusal = refusalOf(pod);
  if (refusal !== undefined && isOutdated(refusal, facts)) return undefined; // it is tried again in a moment
  const waits = waitsForScheduler(pod, facts);
  // while it waits for another claim, the scheduler reports nothing
  const isOld = facts.nowMs - Date.parse(pod.metadata.creationTimestamp ?? '') > silentForMs;
  if (isForScheduler(pod) && (refusal !== undefined || isOld)) {
    const byClaims = claimHint(pod, refusal ?? '', facts);
    if (byClaims !== undefined) return byClaims;
  }
  if (waits?.state === 'waiting') return undefined;
  if (waits !== undefined) return { text: waits.text.replace(/^,? and /, ''), cure: waits.cure };
  return refusal === undefined ? undefined : refusalHint(pod, refusal, facts);
}

/** The Pod does not end, and nothing takes its place before. */
function endHint(pod: Pod, { podNodes, nowMs }: ClaimFacts): Hint | undefined {
  const { state, text, cure } = wayToEnd(pod, podNodes, nowMs);
  if (state === 'waiting') return undefined;
  const creator = creatorOf(pod);
  const next = creator === undefined ? '' : ` ${creator.kind} ${creator.name} replaces the Pod only once it has ended.`;
  return { text: `${text}.${next}`, cure };
}

/** The Pod waits for another claim, or for one that is not this. */
function claimHint(pod: Pod, refusal: string, { claim, siblings = [] }: ClaimFacts): Hint | undefined {
  const { namespace = '', name } = claim.metadata;
  if (isBlockedBy(pod, claim)) {
    return {
      text: `has an ephemeral volume for which a claim ${name} of its own is needed. This claim was not created for the Pod, and is in the way.`,
      cure: `Rename the Pod or its volume, or, if nobody needs this claim: kubectl delete pvc -n ${shellWord(namespace) ?? 'NAMESPACE'} ${name}`,
    };
  }
  const other = claimIn(refusal) ?? siblings.find(({ reading }) => isAwaited(reading))?.name;
  if (other === undefined || other === name) return undefined;
  return {
    text: `waits for its claim ${other}.${refusal === '' ? '' : ` The scheduler: ${refusal}`}`,
    cure: `Look at that claim: csi-provisioner why ${shellWord(`${namespace}/${other}`) ?? 'NAMESPACE/CLAIM'}`,
  };
}

/** Its own claim is bound: what the nodes are refused for. */
function refusalHint(pod: Pod, refusal: string, facts: ClaimFacts): Hint {
  const holder = refused.usedByOne.test(refusal) ? holderHint(pod, facts) : undefined;
  const place = refused.elsewhere.test(refusal) ? placeHint(pod, facts) : undefined;
  const said = `The scheduler: ${refusal}`;
  if (place !== undefined)
    return {
      text: `${place.text}${place.isSure ? '' : ` ${said}`}`,
      cure: place.cure ?? schedulingCure(refusal, { pod, nodes: facts.nodes }),
    };
  return holder ?? { text: `cannot be scheduled. ${said}`, cure: schedulingCure(refusal, { pod, nodes: facts.nodes }) };
}

/** Another Pod has the claim, of which only one may. */
function holderHint(pod: Pod, { claim, hanging, podNodes, nowMs }: ClaimFacts): Hint | undefined {
  const holder = found(hanging?.holders)?.[0];
  if (holder === undefined) return undefined;
  const { name, deletionTimestamp } = holder.metadata;
  const base = `cannot be scheduled: the claim has access mode ReadWriteOncePod, and Pod ${name} on node ${holder.spec?.nodeName ?? ''} uses it`;
  return endOf(holder, {
    base,
    pod,
    isGoing: deletionTimestamp !== undefined,
    namespace: claim.metadata.namespace,
    podNodes,
    nowMs,
  });
}

function endOf(
  holder: Pod,
  {
    base,
    pod,
    isGoing,
    namespace,
    podNodes,
    nowMs,
  }: { base: string; pod: Pod; isGoing: boolean; namespace: string | undefined } & Pick<
    ClaimFacts,
    'podNodes' | 'nowMs'
  >,
): Hint {
  if (isGoing) {
    const { text, cure } = wayToEnd(holder, podNodes, nowMs);
    return { text: `${base}; that Pod ${text}.`, cure: cure.replace('the claim goes', 'the other one starts') };
  }
  return { text: `${base}.`, cure: makeRoom(holder, pod, namespace) };
}

/** A Pod that is created again must not be deleted alone: the new one takes the volume again. */
function makeRoom(holder: Pod, pod: Pod, namespace = ''): string {
  const creator = creatorOf(holder);
  if (creator === undefined) return `Delete that Pod, or wait for its end: ${deleteCommand([holder], namespace)}`;
  const { kind, name, replicaSet } = creator;
  const of = ['-n', namespace, name];
  const own = creatorOf(pod);
  if (kind !== 'Deployment' || own?.kind !== kind || own.name !== name) {
    return `${kind} ${name} would create that Pod again: let only one of the two use the claim, such as by scaling down what creates the other`;
  }
  if (own.replicaSet === replicaSet) {
    const command = shellCommand(['kubectl', 'scale', 'deployment', ...of, '--replicas=1']) ?? '';
    return `Both are replicas of Deployment ${name}, for which a claim with such an access mode has no room: ${command}`;
  }
  const strategy = JSON.stringify({ spec: { strategy: { type: 'Recreate', rollingUpdate: null } } });
  const command = shellCommand(['kubectl', 'patch', 'deployment', ...of, '-p', strategy]) ?? '';
  return `Deployment ${name} keeps the old Pod until the new one is ready, and the new one waits for the volume of the old: give it the strategy Recreate, which ends the old Pod first: ${command}`;
}

/** Its volume can be used on some nodes only. Undefined where that of another claim is meant, or it could not be read. */
function placeHint(
  pod: Pod,
  { volume, nodes, hanging }: ClaimFacts,
): { text: string; cure: string | undefined; isSure: boolean } | undefined {
  const ofClaim = found(volume);
  const terms = ofClaim === undefined ? [] : termsOf(ofClaim);
  if (ofClaim === undefined || terms.length === 0) return undefined;
  const text = `cannot be scheduled: the volume can only be used on nodes with ${terms.map((term) => termText(term)).join(', or ')}`;
  const all = found(nodes);
  if (all === undefined) return { text: `${text}.`, cure: undefined, isSure: false };
  const fitting = all.filter(({ metadata }) => fitsOne(terms, metadata.labels));
  const apart = fitting.length > 0 && hanging !== undefined ? apartHint({ all, fitting, terms }, hanging) : undefined;
  if (apart !== undefined) return { ...apart, isSure: true };
  if (fitting.length > 0) {
    const barriers = fitting.map((node) => barrierOf(node, pod));
    const names = fitting.map(({ metadata }, index) =>
      barriers[index] === undefined ? metadata.name : `${metadata.name} (${barriers[index].text})`,
    );
    const isApart = fitting.every((node) => !isForNode(pod, node));
    const cure = isApart ? apartCure : barriers.includes(undefined) ? undefined : barriers[0]?.cure;
    return { text: `${text}, which are ${nameList(names, maxNamed)}.`, cure, isSure: false };
  }
  const [key = ''] = terms.flat().map((each) => each.key);
  return {
    text: `${text}, and there is none. Nodes have ${valuesOn(all, key) || `no label ${shortValue(key)}`}.`,
    cure:
      key === 'kubernetes.io/hostname' || ofClaim.spec.local !== undefined
        ? `Add the node again under that name; if it is gone for good, so is the data, and the claim is to be recreated: kubectl get nodes -L ${key}`
        : `Add a node there, or see whether one that is there has lost its label; a label alone does not bring storage to a node: kubectl get nodes -L ${shellWord(key) ?? 'KEY'}`,
    isSure: true,
  };
}

/** The volume was created before the Pod was known, or for another one. */
const apartCure =
  'None of these nodes has the labels that nodeSelector or affinity of the Pod ask for: change the Pod, or add a node with these labels where the volume can be used. If the data is not needed, recreate the claim with a class that has volumeBindingMode WaitForFirstConsumer, whose volumes are created where the Pod goes';

/** No node can use both the volume and that of another claim of the Pod. */
function apartHint(
  { all, fitting, terms }: { all: readonly ClusterNode[]; fitting: readonly ClusterNode[]; terms: Terms },
  { sibling, siblingVolume }: HangingPod,
): Hint | undefined {
  const other = found(siblingVolume);
  const others = other === undefined ? [] : termsOf(other);
  if (sibling === undefined || others.length === 0) return undefined;
  if (fitting.some(({ metadata }) => fitsOne(others, metadata.labels))) return undefined;
  const where = (each: Terms): string => {
    const names = all.filter(({ metadata }) => fitsOne(each, metadata.labels)).map(({ metadata }) => metadata.name);
    const text = each.map((term) => termText(term)).join(', or ');
    return names.length === 0 ? `${text}, of which there is none` : `${text}, which are ${nameList(names, maxNamed)}`;
  };
  return {
    text: `cannot be scheduled: no node can use both its volumes. That of this claim is for nodes with ${where(terms)}; that of claim ${sibling.metadata.name} is for nodes with ${where(others)}.`,
    cure: 'Give the Pod claims whose volumes are in one place: recreate the one without needed data, with a class that has volumeBindingMode WaitForFirstConsumer',
  };
}

type Terms = ReturnType<typeof termsOf>;

/** It has a node, and its volume is not there. */
function startHint(pod: Pod, node: string, facts: ClaimFacts): Hint | undefined {
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
    return attachmentHint(node, facts) ?? otherHint(pod, node, facts);
  }
  const ago = durationText(nowMs - newest.atMs);
  const base = `cannot start on node ${node}`;
  if (newest.text.startsWith(multiAttach)) {
    const holder = found(hanging?.holders)?.[0];
    if (holder === undefined)
      return elsewhereHint(base, { sinceMs: newest.sinceMs, text: `${ago} ago: ${newest.text}` }, facts);
    const { name, deletionTimestamp } = holder.metadata;
    const why = `${base}: the volume is attached to node ${holder.spec?.nodeName ?? ''}, where Pod ${name} uses it`;
    return endOf(holder, {
      base: why,
      pod,
      isGoing: deletionTimestamp !== undefined,
      namespace: claim.metadata.namespace,
      podNodes,
      nowMs,
    });
  }
  if (nowMs - newest.atMs > repeatedWithinMs) return attachmentHint(node, facts);
  if (newest.text.includes('volume attachment is being deleted')) return detachingHint(base, facts);
  const isAttach = about.some(({ reason, message }) => reason === 'FailedAttachVolume' && message === newest.text);
  return {
    text: `${base}: its volume cannot be ${isAttach ? 'attached' : 'mounted'}. Last error, ${ago} ago: ${newest.text}`,
    cure: nodeErrorCure(newest.text, { node, isAttach, volume: found(facts.volume) }),
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
/** Reasons for which a container is created a moment later. */
const usualWaits = new Set(['', 'ContainerCreating', 'PodInitializing']);

/** The Pod does not start for something that has nothing to do with the claim. */
function otherHint(pod: Pod, node: string, facts: ClaimFacts): Hint | undefined {
  const { claim, hanging, nowMs } = facts;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const waits = [...initContainerStatuses, ...containerStatuses].find(
    ({ state }) => !usualWaits.has(state?.waiting?.reason ?? ''),
  );
  const { namespace = '', name } = pod.metadata;
  const look = `kubectl describe pod -n ${shellWord(namespace) ?? 'NAMESPACE'} ${name}`;
  if (waits !== undefined) {
    const { reason = '', message = '' } = waits.state?.waiting ?? {};
    const mine = claimsOf(pod).find((each) => each.name === claim.metadata.name);
    if (mine !== undefined && /subpath/i.test(message) && message.includes(`volumeMount "${mine.volume}"`)) {
      return {
        text: `does not start on node ${node}: the volume is mounted, and its container ${waits.name} cannot use a directory of it (${reason}: ${message}).`,
        cure: `Create the directory (subPath of the container) in the volume, or let root of node ${node} write there: with root_squash or a read-only export it may not. The log of its kubelet has the error`,
      };
    }
    return {
      text: `does not start on node ${node}, for a reason other than this claim: its container ${waits.name} waits (${reason}${message === '' ? '' : `: ${message}`}).`,
      cure:
        reason === 'CrashLoopBackOff'
          ? `See why it exits: kubectl logs -n ${shellWord(namespace) ?? 'NAMESPACE'} ${name} -c ${waits.name} --previous`
          : `See why it waits: ${look}`,
    };
  }
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
        ? `Create what it names, such as a ConfigMap or a Secret, or correct the Pod: ${look}`
        : `Look at the claim of that volume: csi-provisioner why ${shellWord(`${namespace}/${other}`) ?? 'NAMESPACE/CLAIM'}`,
  };
}

/** What a kubelet says of volumes where it has just waited. */
const noErrors = /^(?:timed out waiting for the condition|context (?:deadline exceeded|canceled))$/;

/** The volumes of the Pod that a kubelet waits for, by their names in the Pod. */
function unmountedIn(text: string): string[] {
  const [, names = ''] = /^Unable to attach or mount volumes: unmounted volumes=\[([^\]]*)\]/.exec(text) ?? [];
  return names.split(/[ ,]+/).filter((each) => each !== '');
}

/** The kubelet names the volume among those that it waits for, and nobody says why. */
function unmountedHint(node: string, { atMs, text }: Recorded, { volume, hanging, nowMs }: ClaimFacts): Hint {
  const [, error = ''] = /failed to process volumes=\[[^\]]*\]: (.+)$/s.exec(text) ?? [];
  if (error !== '' && !noErrors.test(error)) {
    return {
      text: `cannot start on node ${node}: its kubelet cannot use the volume. Last error, ${durationText(nowMs - atMs)} ago: ${error}`,
      cure: nodeErrorCure(error, { node, isAttach: false, volume: found(volume) }),
    };
  }
  const isAttached = found(hanging?.attachment)?.status?.attached === true;
  const isCsi = found(volume)?.spec.csi !== undefined;
  return {
    text: `does not start on node ${node}: its volume is ${isAttached ? 'attached but ' : ''}not mounted, and no event names an error. Last event, ${durationText(nowMs - atMs)} ago: ${text}`,
    cure: isCsi
      ? `See the log of the driver's node plugin on node ${node}${isAttached ? '' : ', and whether the volume is attached: kubectl get volumeattachments'}`
      : `See the log of the kubelet on node ${node}, and whether the node reaches the storage`,
  };
}

/** Whether an event says that the volume is attached, or that its Pod has got beyond its volumes. */
function isOver(reason: string, message: string, volumeName: string): boolean {
  if (reason === 'SuccessfulAttachVolume') return message.includes(`"${volumeName}"`);
  return beyondVolumes.has(reason);
}

/** The volume is attached anew only once it is detached, for which the attacher says why it fails. */
function detachingHint(base: string, { hanging }: ClaimFacts): Hint {
  const attachment = found(hanging?.attachment);
  const { name = '', finalizers = [] } = attachment?.metadata ?? {};
  const error = attachment?.status?.detachError?.message;
  const own = finalizers.find((each) => each.startsWith(attacherPrefix));
  const look =
    "See the log of the driver's controller, container csi-attacher, and what the storage says of the volume";
  return {
    text: `${base}: the volume is being detached from it first (VolumeAttachment ${name}), which does not end.${error === undefined ? '' : ` Last error: ${quotedError(error)}`}`,
    cure:
      own === undefined
        ? look
        : `${look}. Only if the storage itself shows that the volume is attached to no node, remove the finalizer, and it is attached anew: ${finalizerRemoval({ kind: 'volumeattachment', name, finalizers }, own)}`,
  };
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
