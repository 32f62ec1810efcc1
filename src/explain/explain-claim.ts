/** Why a claim is not bound: the steps of its provisioning in their order. */
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../provision/objects.ts';
import { claimHistory, lookAtAttempt } from './attempt-step.ts';
import { type ClaimFacts, type ClaimReadOptions, readClaimFacts } from './claim-facts-reader.ts';
import { lookAtClaim, lookAtVolume } from './claim-state-steps.ts';
import { lookAtClass, lookAtHandOver, lookAtNode, lookAtSelector } from './class-steps.ts';
import { lookAtConsumer } from './consumer-step.ts';
import { lookAtAttributesClass, lookAtGrant, lookAtSecret, lookAtSource } from './content-steps.ts';
import { type Explanation, type Finding, type Look, walk } from './explanation.ts';
import { lookAtServing } from './provisioner-steps.ts';

const steps: readonly Look<ClaimFacts>[] = [
  { step: 'claim', look: lookAtClaim },
  { step: 'volume', look: lookAtVolume },
  { step: 'class', look: lookAtClass },
  { step: 'consumer', look: lookAtConsumer },
  { step: 'node', look: lookAtNode },
  { step: 'selector', look: lookAtSelector },
  { step: 'hand-over', look: lookAtHandOver },
  { step: 'provisioner', look: lookAtProvisioner },
  { step: 'grant', look: lookAtGrant },
  { step: 'source', look: lookAtSource },
  { step: 'attributes class', look: lookAtAttributesClass },
  { step: 'secret', look: lookAtSecret },
  { step: 'attempt', look: lookAtAttempt },
];

function lookAtProvisioner(facts: ClaimFacts): Finding | undefined {
  const { provisioner, events, nowMs } = facts;
  if (provisioner === undefined) return undefined;
  const { lastMs } = claimHistory(facts);
  return lookAtServing({
    provisioner,
    nowMs,
    events,
    lastSignMs: lastMs,
    nobody: 'no-provisioner',
    away: 'no-leader',
  });
}

/** Checks the steps of a claim against what was read. Pure. */
export function claimExplanation(facts: ClaimFacts): Explanation {
  const { namespace = '', name } = facts.claim.metadata;
  return walk(`${namespace}/${name}`, facts, steps);
}

/**
 * Explains a claim. Read-only, with at most 14 requests.
 *
 * @throws the reason of the reader's signal, and nothing else: what cannot be read is part of the explanation.
 */
export async function explainClaim(
  { namespace, name }: { namespace: string; name: string },
  options: ClaimReadOptions,
): Promise<Explanation> {
  const object = `${namespace}/${name}`;
  const claim = await options.reader.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name });
  if (claim.kind !== 'found') return walk(object, claim, [{ step: 'claim', look: unreadClaim }]);
  const isBound = claim.value.status?.phase === 'Bound' && claim.value.metadata.deletionTimestamp === undefined;
  return claimExplanation(
    isBound ? { claim: claim.value, nowMs: options.now() } : await readClaimFacts(claim.value, options),
  );

  function unreadClaim(reading: typeof claim): Finding {
    if (reading.kind === 'unreadable') return { state: 'unknown', detail: reading.why };
    return {
      state: 'unknown',
      cause: 'not-found',
      message: `There is no claim ${object}.`,
      cure: `List the claims: kubectl get pvc --namespace ${namespace}`,
    };
  }
}
