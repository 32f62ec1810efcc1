/** A claim that is being deleted: what holds it. */
import { nameList } from '../../base/name-list.ts';
import { shellCommand } from '../../base/shell-word.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import {
  claimProtection,
  cloningProtection,
  controllerLateMs,
  controllerManagerCure,
  finalizerCure,
  finalizerText,
  heldFor,
  snapshotProtection,
} from '../known-finalizers.ts';
import { recordedOf } from '../provisioning-events.ts';
import { durationText, lasting } from '../texts.ts';
import { heldByPods, holdersOf } from './holding-pods.ts';
import { snapshotControllerCure, snapshotProblem } from './snapshot.ts';

/** Snapshots in a message: more are counted. */
const maxNamed = 5;
/** kube-controller-manager has deleted what is in a namespace by then, in milliseconds. */
const emptiedWithinMs = 2 * 60_000;

/** A bound claim goes with its namespace, after the Pods there (Kubernetes 1.33 and newer), and after those that use it. */
export function checkNamespaceDeleted(facts: ClaimFacts): Finding | undefined {
  const { claim, ownNamespace, nowMs } = facts;
  const { deletionTimestamp, name = '' } = found(ownNamespace)?.metadata ?? {};
  if (deletionTimestamp === undefined || claim.metadata.deletionTimestamp !== undefined) return undefined;
  const agoMs = nowMs - Date.parse(deletionTimestamp);
  const base = `Namespace ${name} has been Terminating for ${durationText(agoMs)}, and the claim goes with it once its Pods are gone`;
  const byPods = heldByPods(base, facts);
  if (byPods !== undefined) return byPods;
  const remains = (found(ownNamespace)?.status?.conditions ?? [])
    .filter(({ status }) => status === 'True')
    .flatMap(({ message = '' }) => message || []);
  const isLate = agoMs > emptiedWithinMs;
  const cure = `See which Pods are left (kubectl get pods -n ${name}), and which other objects (status.conditions): kubectl get namespace ${name} -o yaml`;
  return {
    state: isLate ? 'stuck' : 'waiting',
    cause: 'deleting',
    message: `${base}.${remains.length === 0 ? '' : ` kube-controller-manager: ${remains.join('; ')}`}`,
    cure: isLate ? cure : lasting('Nothing: it takes a moment', cure),
  };
}

/** A claim that is being deleted stays until its finalizers are gone. */
export function checkClaimDeleted(facts: ClaimFacts): Finding | undefined {
  const { claim, pods, nowMs } = facts;
  const { finalizers = [], deletionTimestamp } = claim.metadata;
  if (deletionTimestamp === undefined) return undefined;
  const base = `The claim is being deleted and is held by ${finalizers.join(', ') || 'no finalizer'}`;
  if (finalizers.includes(claimProtection)) {
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
  if (finalizers.includes(cloningProtection)) return heldByClone(base, facts);
  const bySnapshots = finalizers.includes(snapshotProtection) ? heldBySnapshots(facts) : undefined;
  if (bySnapshots !== undefined) return bySnapshots;
  const foreign = finalizers.find((finalizer) => finalizer !== claimProtection);
  const unused = pods?.kind === 'found' && holdersOf(facts).length === 0 ? ' No Pod uses it.' : '';
  const sinceMs = nowMs - Date.parse(deletionTimestamp);
  if (foreign !== undefined) {
    const { namespace, name } = claim.metadata;
    const others = finalizers.filter((each) => each !== foreign && each !== claimProtection);
    const further = others.length === 0 ? '' : ` Further finalizers: ${others.join(', ')}.`;
    return {
      ...heldFor(sinceMs, finalizerCure({ kind: 'pvc', name, namespace, finalizers }, foreign)),
      cause: 'deleting',
      message: `The claim is being deleted and is held by ${finalizerText(foreign)}.${further}${unused}`,
    };
  }
  const isLate = finalizers.length > 0 && sinceMs > controllerLateMs;
  return {
    state: isLate ? 'stuck' : 'waiting',
    cause: 'deleting',
    message: `${base}.${unused}${isLate ? ` It was deleted ${durationText(sinceMs)} ago.` : ''}`,
    cure: isLate ? controllerManagerCure : 'Nothing: kube-controller-manager will remove the finalizer in a moment',
  };
}

/** The snapshot-controller keeps a claim until all snapshots of it are taken. */
function heldBySnapshots(facts: ClaimFacts): Finding | undefined {
  const { claim, nowMs } = facts;
  const { namespace = '', deletionTimestamp = '' } = claim.metadata;
  const base = `The claim is being deleted and is held by ${snapshotProtection} of the snapshot-controller`;
  const names = found(facts.unready)?.map(({ metadata }) => metadata.name);
  if (names === undefined) return undefined;
  if (names.length === 0) {
    return {
      ...heldFor(nowMs - Date.parse(deletionTimestamp), snapshotControllerCure),
      cause: 'deleting',
      message: `${base}, which removes it once no snapshot of the claim is being taken; none is.`,
    };
  }
  const problem = snapshotProblem(facts);
  const [first = '', ...others] = names;
  const further = others.length === 0 ? '' : ` Also not ready: ${nameList(others, maxNamed)}.`;
  const command = shellCommand(['kubectl', 'delete', 'volumesnapshot', '-n', namespace, first]) ?? '';
  return {
    state: problem?.state ?? 'waiting',
    cause: 'deleting',
    message: `${base}, because of a snapshot of it: VolumeSnapshot ${first} ${problem?.text ?? 'is not ready'}.${further}`,
    cure:
      problem?.state === 'stuck'
        ? `Fix that, so that the snapshot can be taken; or, if nobody needs it, delete it: ${command}`
        : 'Nothing: the claim goes once the snapshot is taken',
  };
}

/** The provisioner names the clone in an event on its source. */
function heldByClone(base: string, { events }: ClaimFacts): Finding {
  const waits = (found(events) ?? []).filter(({ reason }) => reason === 'CloneProtectionWaiting');
  const text = recordedOf(waits)?.text;
  return {
    state: 'waiting',
    cause: 'deleting',
    message: `${base}, because it is the source of a clone that is pending or in progress.${text === undefined ? '' : ` The provisioner: ${text}`}`,
    cure: `Wait until the clone is complete.${text === undefined ? ' The event CloneProtectionWaiting on this claim names the other one.' : ''} If provisioning of the other claim keeps failing, delete that one, since no clone is begun once its source is being deleted; if it no longer exists, run csi-provisioner journal list`,
  };
}
