/** What texts of failures and waits mean: the causes, in the order in which their texts are compared. */
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { apiServer } from './api-server.ts';
import { attached } from './attached.ts';
import { attributesClass } from './attributes-class.ts';
import { bound } from './bound.ts';
import type { Cause, CauseDefinition } from './cause.ts';
import { classNotFound } from './class-not-found.ts';
import { classParameters } from './wrong-parameters.ts';
import { deleteError } from './delete-error.ts';
import { deleting } from './deleting.ts';
import { driverError } from './driver-error.ts';
import { featureDisabled } from './feature-disabled.ts';
import { grantMissing } from './grant-missing.ts';
import { inProgress } from './in-progress.ts';
import { inUse } from './in-use.ts';
import { lost } from './lost.ts';
import { nameTaken } from './name-taken.ts';
import { noCapacity } from './no-capacity.ts';
import { noClass } from './no-class.ts';
import { noDeleter } from './no-deleter.ts';
import { noLeader } from './no-leader.ts';
import { noProvisioner } from './no-provisioner.ts';
import { noTopology } from './no-topology.ts';
import { notFound } from './not-found.ts';
import { notHandedOver } from './not-handed-over.ts';
import { notReady } from './not-ready.ts';
import { otherSource } from './other-source.ts';
import { podUnschedulable } from './pod-unschedulable.ts';
import { provisionerAway } from './provisioner-away.ts';
import { rejected } from './rejected.ts';
import { requestMeaning } from './request-meaning.ts';
import { retained } from './retained.ts';
import { secretContent, secretCure } from './secret-content.ts';
import { secretMissing } from './secret-missing.ts';
import { selectedNodeGone } from './selected-node-gone.ts';
import { selector } from './selector.ts';
import { sharedStorage } from './storage-shared.ts';
import { sourceMissing } from './source-missing.ts';
import { sourceNotReady } from './source-not-ready.ts';
import { staticClass } from './static-class.ts';
import { unsupportedSize } from './unsupported-size.ts';
import { volumeMade } from './volume-made.ts';
import { waitsForPod } from './waits-for-consumer.ts';
import { waitsForVolume } from './waits-for-volume.ts';

const definitions: readonly CauseDefinition[] = [
  bound,
  notFound,
  noClass,
  classNotFound,
  staticClass,
  classParameters,
  waitsForVolume,
  lost,
  waitsForPod,
  podUnschedulable,
  secretMissing,
  secretContent,
  featureDisabled,
  grantMissing,
  sourceMissing,
  sourceNotReady,
  attributesClass,
  selector,
  selectedNodeGone,
  noProvisioner,
  noLeader,
  notReady,
  provisionerAway,
  noTopology,
  nameTaken,
  notHandedOver,
  noCapacity,
  unsupportedSize,
  inProgress,
  volumeMade,
  deleting,
  inUse,
  attached,
  sharedStorage,
  otherSource,
  retained,
  deleteError,
  noDeleter,
  rejected,
  apiServer,
  driverError, // last, as it fits every failure
];

/** Prefixes of the Go sidecar; the first one before version 6. */
const classPrefix = /^failed to provision volume with StorageClass "[^"]*": /;
const infeasiblePrefix = /^Volume provisioning failed with infeasible error\. Retries will be delayed\. /;

export interface Meaning {
  cause: Cause;
  cure: string;
}

/** What is known of a failed attempt besides its text. */
export interface KnownOfFailure {
  /** What it failed with; undefined outside of the process that made the attempt. */
  error?: unknown;
  /** The cause that the event names. */
  recorded?: string | undefined;
  /** A Secret may explain what the driver refuses. */
  facts?: ClaimFacts;
}

/** What a failed attempt means: `driver-error` for one that nothing else fits. */
export function failureMeaning(text: string, known: KnownOfFailure = {}): Meaning {
  const { facts } = known;
  const ofRequest = requestMeaning(text, known);
  if (ofRequest?.beatsTexts === true) return { cause: ofRequest.cause, cure: ofRequest.cure };
  const byText = (facts && secretCure(text, facts)) ?? textualMeaning(text);
  if (ofRequest === undefined || !vagueCauses.has(byText.cause)) return byText;
  return { cause: ofRequest.cause, cure: ofRequest.cure };
}

/** Causes of texts that say little: the failed request, where it is known, says more. */
const vagueCauses: ReadonlySet<Cause> = new Set(['driver-error', 'api-server']);

function textualMeaning(text: string): Meaning {
  const bare = text.replace(classPrefix, '').replace(infeasiblePrefix, '');
  const texts = bare === text ? [text] : [bare, text];
  for (const { name, failures = [] } of definitions) {
    const meaning = failures.find(({ pattern }) => texts.some((each) => pattern.test(each)));
    if (meaning !== undefined) return { cause: name, cure: meaning.cure };
  }
  throw new Error('the last cause fits every text');
}

/** What either text means. @param error - with which the attempt failed. */
export function textMeaning(text: string, error?: unknown): Meaning {
  return waitMeaning(text) ?? failureMeaning(text, { error });
}

/** What a `ProvisioningWaiting` event of this sidecar means; undefined for a text of another provisioner. */
export function waitMeaning(text: string): (Meaning & { state: 'waiting' | 'stuck' }) | undefined {
  for (const { name, waits = [] } of definitions) {
    const meaning = waits.find(({ pattern }) => pattern.test(text));
    if (meaning !== undefined) return { cause: name, cure: meaning.cure, state: meaning.state };
  }
  return undefined;
}
