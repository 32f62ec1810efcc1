/** The steps of a claim in their order, and what may hold it at each. */
import { shortValue } from '../base/short-value.ts';
import { className } from '../provision/claim/claim-fields.ts';
import { attempts, type FailedAttempt } from './attempts.ts';
import { checkAttributesBind, checkAttributesClass } from './causes/attributes-class.ts';
import { checkBound } from './causes/bound.ts';
import { waitMeaning } from './causes/causes.ts';
import { checkClassExists } from './causes/class-not-found.ts';
import { checkClaimDeleted } from './causes/deleting.ts';
import { checkFailed } from './causes/driver-error.ts';
import { checkFeatureEnabled } from './causes/feature-disabled.ts';
import { checkGrant } from './causes/grant-missing.ts';
import { checkNotBegun, checkUnderWay } from './causes/in-progress.ts';
import { checkLost } from './causes/lost.ts';
import { checkNameTaken } from './causes/name-taken.ts';
import { checkNamesClass } from './causes/no-class.ts';
import { checkElectionWaits, checkSeemsAway } from './causes/no-leader.ts';
import { checkProvisioner } from './causes/no-provisioner.ts';
import { checkAllowedTopologies } from './causes/no-topology.ts';
import { checkHandOver } from './causes/not-handed-over.ts';
import { checkReady } from './causes/not-ready.ts';
import { checkSecret } from './causes/secret-missing.ts';
import { checkNode } from './causes/selected-node-gone.ts';
import { checkSelector } from './causes/selector.ts';
import { checkSourceExists } from './causes/source-missing.ts';
import { checkPopulator, checkSourceReady } from './causes/source-not-ready.ts';
import { checkEmptyClass, checkHasProvisioner } from './causes/static-class.ts';
import { checkBinding, checkSucceeded } from './causes/volume-made.ts';
import { checkConsumer, checkConsumerReadable, checkHasConsumer } from './causes/waits-for-consumer.ts';
import { checkNamedVolume } from './causes/waits-for-volume.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import { found } from './cluster-reader.ts';
import type { Check, CheckedStep, Finding } from './explanation.ts';
import { failedHolding } from './failed-attempt.ts';
import { durationText } from './time-text.ts';

type ClaimCheck = (facts: ClaimFacts) => Finding | FailedAttempt | undefined;

const steps: readonly { step: string; checks: readonly ClaimCheck[] }[] = [
  { step: 'claim', checks: [checkClaimDeleted, checkBound, checkLost, claimExists] },
  { step: 'volume', checks: [checkNamedVolume, volumeUnread, checkNameTaken, checkAttributesBind, checkBinding] },
  { step: 'class', checks: [checkNamesClass, checkEmptyClass, checkClassExists, classExists] },
  { step: 'topology', checks: [checkAllowedTopologies] },
  { step: 'consumer', checks: [checkConsumerReadable, checkHasProvisioner, checkHasConsumer, checkConsumer] },
  { step: 'node', checks: [checkNode] },
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
