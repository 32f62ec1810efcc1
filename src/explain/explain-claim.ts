/** Why a claim is not bound. */
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../provision/objects.ts';
import { absentSteps, readAbsentFacts } from './absent-claim.ts';
import { type ClaimName, followed } from './chain.ts';
import { type ClaimFacts, type ClaimReadOptions, readBoundFacts, readClaimFacts } from './claim-facts-reader.ts';
import { claimSteps } from './claim-steps.ts';
import { type Explanation, type Walked, walk } from './explanation.ts';

/** Checks the steps of a claim against what is known of it. Pure. */
export function claimExplanation(facts: ClaimFacts): Explanation {
  const { object, verdict, cause, message, cure, steps } = walkClaim(facts);
  return { object, verdict, cause, message, cure, steps };
}

function walkClaim(facts: ClaimFacts): Walked {
  const { namespace = '', name } = facts.claim.metadata;
  return walk(`${namespace}/${name}`, facts, claimSteps);
}

/**
 * Explains a claim. Read-only, with at most one request more than `readClaimFacts`; of a bound claim with a selected node three in all.
 * Where it waits for another claim, that one is explained as well.
 *
 * @throws the reason of the reader's signal, and nothing else: what cannot be read is part of the explanation.
 */
export async function explainClaim(claim: ClaimName, options: ClaimReadOptions): Promise<Explanation> {
  return await explainOnWay(claim, options, new Set([`${claim.namespace}/${claim.name}`]));
}

/** @param seen - the claims on the way to this one, and itself. */
async function explainOnWay(
  claim: ClaimName,
  options: ClaimReadOptions,
  seen: ReadonlySet<string>,
): Promise<Explanation> {
  const walked = await walkNamed(claim, options);
  return await followed(walked, (next, all) => explainOnWay(next, options, all), seen);
}

async function walkNamed({ namespace, name }: ClaimName, options: ClaimReadOptions): Promise<Walked> {
  const claim = await options.reader.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name });
  if (claim.kind !== 'found') {
    return walk(`${namespace}/${name}`, await readAbsentFacts({ namespace, name }, claim, options), absentSteps);
  }
  const isBound = claim.value.status?.phase === 'Bound' && claim.value.metadata.deletionTimestamp === undefined;
  return walkClaim(await (isBound ? readBoundFacts : readClaimFacts)(claim.value, options));
}
