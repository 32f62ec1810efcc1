/** Why a claim is not bound. */
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../provision/objects.ts';
import { claimNotRead } from './causes/claim.ts';
import { type ClaimFacts, type ClaimReadOptions, readBoundFacts, readClaimFacts } from './claim-facts-reader.ts';
import { claimSteps } from './claim-steps.ts';
import { type Explanation, walk } from './explanation.ts';

/** Checks the steps of a claim against what is known of it. Pure. */
export function claimExplanation(facts: ClaimFacts): Explanation {
  const { namespace = '', name } = facts.claim.metadata;
  return walk(`${namespace}/${name}`, facts, claimSteps);
}

/**
 * Explains a claim. Read-only, with at most one request more than `readClaimFacts`; of a bound claim with a selected node three in all.
 *
 * @throws the reason of the reader's signal, and nothing else: what cannot be read is part of the explanation.
 */
export async function explainClaim(
  { namespace, name }: { namespace: string; name: string },
  options: ClaimReadOptions,
): Promise<Explanation> {
  const claim = await options.reader.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name });
  if (claim.kind !== 'found') {
    return walk(`${namespace}/${name}`, claim, [{ step: 'claim', checks: [claimNotRead(namespace, name)] }]);
  }
  const isBound = claim.value.status?.phase === 'Bound' && claim.value.metadata.deletionTimestamp === undefined;
  return claimExplanation(await (isBound ? readBoundFacts : readClaimFacts)(claim.value, options));
}
