/** A bound claim that requests more than it has (Kubernetes page "Persistent Volumes", "Expanding Persistent Volumes Claims"). */
import { requestedProvisioner } from '../../provision/claim-fields.ts';
import { type ClaimFacts, isToBeExpanded, sizesOf } from '../claim-facts-reader.ts';
import type { ClusterEvent, ResizedClaim } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Holding } from '../explanation.ts';
import { type Recorded, recordedOf } from '../provisioning-events.ts';
import { noProvisioner } from '../static-volumes.ts';
import { durationText, lastChangeMs, lasting, quotedError } from '../texts.ts';
import { storageCure } from './storage-words.ts';

/** An external-resizer that works has begun by then, in milliseconds. */
const begunWithinMs = 60_000;
/** A driver that needs longer for one expansion needs somebody, in milliseconds. */
const expandedWithinMs = 10 * 60_000;

const failedReason = 'VolumeResizeFailed';
const resizerReasons = [failedReason, 'Resizing', 'FileSystemResizeRequired', 'VolumeResizeSuccessful'];
/** Feature RecoverVolumeExpansionFailure: on by default since Kubernetes 1.32, GA in 1.34. */
const smallerCure =
  'or request less: since Kubernetes 1.32 spec.resources.requests.storage can be lowered again, to more than status.capacity';

/** What becomes of a request for more: the claim stays bound with what it has. */
export function checkExpansion(facts: ClaimFacts): Holding | undefined {
  const { claim } = facts;
  if (claim.status?.phase !== 'Bound' || !isToBeExpanded(claim)) return undefined;
  const { wanted = '', has = '' } = sizesOf(claim);
  const { text, cure, isLate } = hintOf(claim, facts);
  return {
    state: 'ok',
    stepState: isLate ? 'stuck' : 'waiting',
    cause: 'bound',
    message: `The claim is bound to PersistentVolume ${claim.spec.volumeName ?? ''}, requests ${wanted}, and has ${has}: ${text}.`,
    cure: isLate ? cure : lasting('Nothing yet', cure),
  };
}

interface Hint {
  /** Without its full stop. */
  text: string;
  cure: string;
  isLate: boolean;
}

function hintOf({ status }: ResizedClaim, facts: ClaimFacts): Hint {
  const { claim, events, nowMs } = facts;
  const all = found(events) ?? [];
  const ofResizer = all.filter(({ reason = '' }) => resizerReasons.includes(reason));
  const newest = newestOf(ofResizer);
  const reason = ofResizer.findLast(({ message = '' }) => message === newest?.text)?.reason ?? '';
  const conditions = (status?.conditions ?? []).filter(({ status: each }) => each === 'True');
  const state = status?.allocatedResourceStatuses?.['storage'] ?? '';
  const error = conditions.find(({ type }) => type === 'ControllerResizeError' || type === 'NodeResizeError');
  if (conditions.some(({ type }) => type === 'FileSystemResizePending') || state.startsWith('NodeResize')) {
    return onNode(error?.message, state, facts);
  }
  if (reason === failedReason || error !== undefined || state.endsWith('Infeasible')) {
    const ago = newest === undefined ? '' : `, ${durationText(nowMs - newest.atMs)} ago`;
    return {
      text: `the volume could not be expanded${ago}: ${quotedError(newest?.text ?? error?.message ?? state).replace(/\.$/, '')}`,
      cure: failedCure(newest?.text ?? error?.message ?? ''),
      isLate: true,
    };
  }
  if (newest !== undefined || state !== '' || conditions.some(({ type }) => type === 'Resizing')) {
    const sinceMs = nowMs - (newest?.sinceMs ?? lastChangeMs(claim));
    return {
      text: `the driver's external-resizer has been expanding the volume for ${durationText(sinceMs)}`,
      cure: "See the log of the driver's controller, container csi-resizer: the storage may not respond",
      isLate: sinceMs > expandedWithinMs,
    };
  }
  return untouched(facts);
}

/** external-resizer records the start of each attempt; event times are in seconds. */
const beginningMs = 2000;

function newestOf(ofResizer: readonly ClusterEvent[]): Recorded | undefined {
  const failed = recordedOf(ofResizer.filter(({ reason }) => reason === failedReason));
  const newest = recordedOf(ofResizer);
  const isBeginning = failed !== undefined && newest !== undefined && newest.atMs - failed.atMs <= beginningMs;
  return isBeginning && !hasSucceeded(ofResizer, newest) ? failed : newest;
}

function hasSucceeded(ofResizer: readonly ClusterEvent[], { text }: Recorded): boolean {
  return ofResizer.some(({ reason, message }) => message === text && reason === 'VolumeResizeSuccessful');
}

/** Of clouds that let some time pass between two changes of a volume. */
const tooSoonWords =
  /ModificationRateExceeded|modification rate|wait (?:at least|until|for) |cooldown|too (?:soon|frequent)/i;

/** Storages that expand only what no machine uses. */
const detachedWords = /\b(?:attached|in[- ]use|published|mounted|online|detached|deallocat\w*|running)\b/i;

function failedCure(text: string): string {
  const log = "the log of the driver's controller, container csi-resizer, has the rest";
  if (tooSoonWords.test(text))
    return `Wait for as long as the error says: the storage lets that time pass between two changes of a volume, and external-resizer tries again (${log})`;
  if (/secret/i.test(text))
    return `The Secret for the expansion is missing: create it if the message names one; otherwise name one in the class (csi.storage.k8s.io/controller-expand-secret-name and -namespace, for new volumes) and in spec.csi.controllerExpandSecretRef of this PersistentVolume (${log})`;
  if (/\bsnapshots?\b/i.test(text))
    return `Unless the error says otherwise: this storage expands no volume that has snapshots. Only if none is needed, delete them all; it is then expanded (${log}); ${smallerCure}`;
  const known = storageCure(text);
  if (known !== undefined) return `${known} (${log})`;
  return detachedWords.test(text)
    ? `Unless the error says otherwise: this storage expands only what no machine uses. End the Pods that use the claim, such as by scaling down what creates them, until the volume is detached; it is then expanded, and the Pods can start again (${log}); ${smallerCure}`
    : `Do what the error says (${log}), ${smallerCure}`;
}

/** The storage is larger; a kubelet expands the file system where a Pod uses it. */
function onNode(error: string | undefined, state: string, { claim, nowMs }: ClaimFacts): Hint {
  const sinceMs = nowMs - lastChangeMs(claim);
  const failed = error ?? (state.endsWith('Infeasible') ? state : undefined);
  return {
    text:
      failed === undefined
        ? `the storage has been expanded, and for ${durationText(sinceMs)} the file system has not: the kubelet expands it where a Pod uses the claim`
        : `the storage has been expanded, and the kubelet could not expand the file system: ${quotedError(failed).replace(/\.$/, '')}`,
    cure: "Start a Pod that uses the claim. If one is running: see its events, and the log of the driver's node plugin on its node; where the driver expands only what is not in use, recreate the Pod",
    isLate: failed !== undefined || sinceMs > begunWithinMs,
  };
}

/** No external-resizer has said anything. */
function untouched({ claim, events, nowMs }: ClaimFacts): Hint {
  const waits = recordedOf((found(events) ?? []).filter(({ reason }) => reason === 'ExternalExpanding'));
  const sinceMs = nowMs - (waits?.sinceMs ?? lastChangeMs(claim));
  const provisioner = requestedProvisioner(claim);
  const isStatic = provisioner === undefined || provisioner === noProvisioner;
  const driver = isStatic ? 'its driver' : provisioner;
  const said = waits === undefined ? '' : `. kube-controller-manager: ${waits.text.replace(/\.$/, '')}`;
  const unread = events?.kind === 'unreadable' ? ` (${events.why})` : '';
  return {
    text: `no external-resizer of ${driver} has begun to expand the volume in ${durationText(sinceMs)}${unread}${said}`,
    cure: `${isStatic ? 'If its PersistentVolume has no spec.csi, nothing expands it: create a larger volume and claim, and copy the data. Else run' : 'Run'} the sidecar csi-resizer beside the controller of ${driver}, or see its log if it does run; if the driver cannot expand volumes, create a larger claim and copy the data`,
    isLate: sinceMs > begunWithinMs,
  };
}
