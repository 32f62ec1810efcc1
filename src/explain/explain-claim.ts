/** Why a claim is not bound. */
import { shortValue } from '../base/short-value.ts';
import { className } from '../provision/claim-fields.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../provision/objects.ts';
import { absentSteps, readAbsentFacts } from './absent-claim.ts';
import { attempts, type FailedAttempt } from './attempts.ts';
import { checkAttributesBind, checkAttributesClass } from './causes/attributes-class.ts';
import { checkHangingPod, checkPodsReadable, checkUnhindered } from './causes/bound.ts';
import { waitMeaning } from './causes/causes.ts';
import { checkBinding, checkBound, checkLost, checkNameTaken, checkSucceeded } from './causes/claim.ts';
import { checkClassExists, checkNamesClass, checkUnreadClass } from './causes/class.ts';
import { checkClaimDeleted, checkNamespaceDeleted } from './causes/deletion.ts';
import { checkFailed } from './causes/driver-error.ts';
import { checkExpansion } from './causes/expansion.ts';
import { checkSecret } from './causes/failure.ts';
import {
  checkClassOfVolumes,
  checkEmptyClass,
  checkHasProvisioner,
  checkNamedVolume,
  checkSelector,
  checkStaticConsumer,
} from './causes/fitting-volume.ts';
import { checkFeatureEnabled, checkGrant } from './causes/grant.ts';
import { checkConsumer, checkConsumerReadable, checkHasConsumer } from './causes/pod.ts';
import { checkPopulator } from './causes/populator.ts';
import {
  checkElectionWaits,
  checkHandOver,
  checkNotBegun,
  checkProvisioner,
  checkReady,
  checkSeemsAway,
  checkUnderWay,
} from './causes/provisioner-state.ts';
import { checkOwners } from './causes/refusal.ts';
import { checkSourceExists, checkSourceReady } from './causes/source.ts';
import { checkAllowedTopologies, checkNode, checkRegistered } from './causes/chosen-node.ts';
import { type ClaimName, followed } from './chain.ts';
import { type ClaimFacts, type ClaimReadOptions, readBoundFacts, readClaimFacts } from './claim-facts-reader.ts';
import { found } from './cluster-reader.ts';
import { type Check, type CheckedStep, type Explanation, type Finding, walk, type Walked } from './explanation.ts';
import { failedHolding } from './failed-attempt.ts';
import { durationText } from './texts.ts';

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

type ClaimCheck = (facts: ClaimFacts) => Finding | FailedAttempt | undefined;

const steps: readonly { step: string; checks: readonly ClaimCheck[] }[] = [
  { step: 'claim', checks: [checkClaimDeleted, checkNamespaceDeleted, checkUnhindered, checkLost, claimExists] },
  { step: 'pod', checks: [checkPodsReadable, checkHangingPod] },
  { step: 'expansion', checks: [checkExpansion] },
  {
    step: 'volume',
    checks: [checkBound, checkNamedVolume, volumeUnread, checkNameTaken, checkAttributesBind, checkBinding],
  },
  {
    step: 'class',
    checks: [checkNamesClass, checkEmptyClass, checkClassOfVolumes, checkUnreadClass, checkClassExists, classExists],
  },
  { step: 'topology', checks: [checkAllowedTopologies] },
  { step: 'owner', checks: [checkOwners] },
  {
    step: 'consumer',
    checks: [checkConsumerReadable, checkHasProvisioner, checkHasConsumer, checkStaticConsumer, checkConsumer],
  },
  { step: 'node', checks: [checkRegistered, checkNode] },
  { step: 'selector', checks: [checkSelector] },
  { step: 'hand-over', checks: [checkHandOver] },
  { step: 'provisioner', checks: [checkReady, checkElectionWaits, checkProvisioner] },
  { step: 'feature', checks: [checkFeatureEnabled] },
  { step: 'grant', checks: [checkGrant] },
  { step: 'source', checks: [checkPopulator, checkSourceExists, checkSourceReady] },
  { step: 'attributes class', checks: [checkAttributesClass] },
  { step: 'secret', checks: [checkSecret] },
  {
    step: 'attempt',
    checks: [eventsUnread, checkSucceeded, checkWaits, checkFailed, checkUnderWay, checkSeemsAway, checkNotBegun],
  },
];

export const claimSteps: readonly CheckedStep<ClaimFacts>[] = steps.map(({ step, checks }) => ({
  step,
  checks: checks.map(withMeaning),
}));

/** The text of a failed attempt says what it means. */
function withMeaning(check: ClaimCheck): Check<ClaimFacts> {
  return (facts) => {
    const found = check(facts);
    return found !== undefined && 'failed' in found ? failedHolding(found, facts) : found;
  };
}

function claimExists({ claim }: ClaimFacts): Finding {
  return { state: 'ok', detail: `it exists and is ${claim.status?.phase ?? 'new'}` };
}

function volumeUnread({ volume }: ClaimFacts): Finding | undefined {
  return volume?.kind === 'unreadable' ? { state: 'unknown', detail: volume.why } : undefined;
}

function classExists({ claim, storageClass }: ClaimFacts): Finding | undefined {
  const existing = found(storageClass);
  if (existing === undefined) return undefined;
  const mode = existing.volumeBindingMode ?? 'Immediate';
  return { state: 'ok', detail: `${shortValue(className(claim))}, provisioner ${existing.provisioner}, ${mode}` };
}

function eventsUnread({ events }: ClaimFacts): Finding | undefined {
  return events?.kind === 'unreadable' ? { state: 'unknown', detail: events.why } : undefined;
}

/** The newest event says what the claim waits for. */
function checkWaits(facts: ClaimFacts): Finding | undefined {
  const { waiting, failed, started } = attempts(facts);
  if (waiting === undefined || waiting.atMs < Math.max(failed?.atMs ?? 0, started?.atMs ?? 0)) return undefined;
  const meaning = waitMeaning(waiting.text);
  if (meaning === undefined) return undefined;
  if (meaning.cause === 'class-not-found' && found(facts.storageClass) !== undefined) return undefined; // it is there now
  const ago = durationText(facts.nowMs - waiting.atMs);
  const text = waiting.text.replace(`. ${meaning.cure}`, ''); // with which this sidecar records it
  return { ...meaning, message: `The provisioner ${ago} ago: ${text}.` };
}
