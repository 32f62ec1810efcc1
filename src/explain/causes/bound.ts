/** A bound claim, and why a Pod that uses it does not start: the claim has what it asked for, so that is a hint. */
import { shellWord } from '../../base/shell-word.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { isBlockedBy, type Pod } from '../cluster-objects.ts';
import type { Finding } from '../explanation.ts';
import { claimIn, isAwaited, isForScheduler, refusalOf, silentForMs } from '../scheduler-words.ts';
import { checkAttributesModified, checkSourceDropped } from './attributes-class.ts';
import type { Hint } from './cause.ts';
import { checkBound } from './claim.ts';
import { checkExpansion } from './expansion.ts';
import { creatorOf, wayToEnd } from './holding-pods.ts';
import { placedHint } from './placed-pod.ts';
import { isOutdated, waitsForScheduler } from './pod.ts';
import { refusedHint } from './refused-pod.ts';

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
  if (node !== '') return placedHint(pod, node, facts);
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
  return refusal === undefined ? undefined : refusedHint(pod, refusal, facts);
}

/** The Pod does not end, and nothing takes its place before. */
function endHint(pod: Pod, facts: ClaimFacts): Hint | undefined {
  const { state, text, cure } = wayToEnd(pod, facts);
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
