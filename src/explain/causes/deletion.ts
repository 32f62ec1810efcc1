/** A claim that is being deleted: what holds it. */
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
} from '../known-finalizers.ts';
import { recordedOf } from '../provisioning-events.ts';
import { durationText } from '../time-text.ts';
import { heldByPods, holdersOf } from './holding-pods.ts';

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
