/** What texts of failures and waits mean: the causes, in the order in which their texts are compared. */
import { nameList } from '../../base/name-list.ts';
import { shortValue } from '../../base/short-value.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import { driverLogText } from '../driver-log.ts';
import { type MissingRight, missingRight, rightCure } from '../missing-right.ts';
import { cureText, type LastingCure, readPart } from '../texts.ts';
import { attributesClass } from './attributes-class.ts';
import type { Cause, CauseDefinition } from './cause.ts';
import { nameTaken } from './claim.ts';
import { classNotFound, classParameters, noClass } from './class.ts';
import { driverError, sourceRefusal } from './driver-error.ts';
import {
  annotationCure,
  apiServer,
  rejected,
  requestMeaning,
  secretCure,
  secretMissing,
  unsupportedSize,
  parameterCure,
} from './failure.ts';
import { selector } from './fitting-volume.ts';
import { featureDisabled, grantMissing } from './grant.ts';
import { noCapacity } from './pod.ts';
import { inProgress, noProvisioner, notHandedOver, provisionerAway } from './provisioner-state.ts';
import { sourceMissing, sourceNotReady } from './source.ts';
import { noTopology, selectedNodeGone } from './chosen-node.ts';

/** Those that show in texts. */
const definitions: readonly CauseDefinition[] = [
  noClass,
  classNotFound,
  classParameters,
  secretMissing,
  featureDisabled,
  grantMissing,
  sourceMissing,
  sourceNotReady,
  attributesClass,
  selector,
  selectedNodeGone,
  noProvisioner,
  provisionerAway,
  noTopology,
  nameTaken,
  notHandedOver,
  noCapacity,
  unsupportedSize,
  inProgress,
  rejected,
  apiServer,
  driverError, // last, as it fits every failure
];

/** Parameters in a message: more are counted. */
const maxParameters = 8;

/** Prefixes of the Go sidecar; the first one before version 6. */
const classPrefix = /^failed to provision volume with StorageClass "[^"]*": /;
const infeasiblePrefix = /^Volume provisioning failed with infeasible error\. Retries will be delayed\. /;

export interface Meaning extends LastingCure {
  cause: Cause;
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
export function failureMeaning(error: string, known: KnownOfFailure = {}): Meaning {
  const text = readPart(error);
  const meaning = meaningOf(text, known);
  const right = missingRight(text);
  return right === undefined ? meaning : ofMissingRight(text, meaning, right);
}

/** A driver may lack a permission of its own; other causes name what the permission is for. */
function ofMissingRight(text: string, { cause, cure }: Meaning, right: MissingRight): Meaning {
  const granted = rightCure(right);
  if (cause === 'secret-missing') return { cause, cure: `Whether the Secret exists is not known. ${granted}` };
  const isOfDriver = /code = \w+ desc = /.test(text);
  const isVague = vagueCauses.has(cause);
  return { cause: isVague && !isOfDriver ? 'rejected' : cause, cure: cause === 'no-capacity' ? cure : granted };
}

function meaningOf(text: string, known: KnownOfFailure): Meaning {
  const { facts } = known;
  const ofRequest = requestMeaning(text, known);
  if (ofRequest?.beatsTexts === true) return { cause: ofRequest.cause, cure: ofRequest.cure };
  const byText = (facts && meaningOfFacts(text, facts)) ?? textualMeaning(text, facts);
  if (ofRequest === undefined || !vagueCauses.has(byText.cause)) return byText;
  return { cause: ofRequest.cause, cure: ofRequest.cure };
}

/** What the text means for a claim like this. */
function meaningOfFacts(text: string, facts: ClaimFacts): Meaning | undefined {
  const annotation = annotationCure(text, facts);
  if (annotation !== undefined) return { cause: 'secret-missing', cure: annotation };
  const ofSource = secretCure(text, facts) ?? sourceRefusal(text, facts);
  if (ofSource !== undefined) return ofSource;
  const parameter = parameterCure(text, facts);
  return parameter === undefined ? undefined : { cause: 'driver-error', cure: parameter };
}

/** Causes of texts that say little: the failed request, where it is known, says more. */
const vagueCauses: ReadonlySet<Cause> = new Set(['driver-error', 'api-server', 'source-missing', 'source-not-ready']);

function secretText(facts: ClaimFacts | undefined): string {
  if (facts?.secret === undefined) return '';
  const { namespace, name } = facts.secret.reference;
  return ` (the class names Secret ${namespace}/${name})`;
}

/** With the names of the parameters of the class that are for the driver: their values may be secret. */
function ofParameters(cure: string, facts: ClaimFacts | undefined): string {
  const all = Object.keys(found(facts?.storageClass)?.parameters ?? {});
  const own = all.filter((key) => !key.startsWith('csi.storage.k8s.io/')).map((key) => shortValue(key));
  return own.length === 0 ? cure : `${cure} (parameters of the class: ${nameList(own, maxParameters)})`;
}

function textualMeaning(text: string, facts: ClaimFacts | undefined): Meaning {
  const bare = text.replace(classPrefix, '').replace(infeasiblePrefix, '');
  const texts = bare === text ? [text] : [bare, text];
  for (const { name, failures = [] } of definitions) {
    const meaning = failures.find(({ pattern }) => texts.some((each) => pattern.test(each)));
    if (meaning !== undefined) {
      const { cure, late, log, byWords, account, parameters } = meaning;
      if (parameters === true) return { cause: name, cure: ofParameters(cure, facts), late, log, byWords };
      return { cause: name, cure: account === true ? `${cure}${secretText(facts)}` : cure, late, log, byWords };
    }
  }
  throw new Error('the last cause fits every text');
}

/** What either text means, with a cure that says all. @param error - with which the attempt failed. */
export function textMeaning(text: string, error?: unknown): { cause: Cause; cure: string } {
  const wait = waitMeaning(text);
  if (wait !== undefined) return wait;
  const meaning = failureMeaning(text, { error });
  return {
    cause: meaning.cause,
    cure: cureText(meaning, { isLate: meaning.late === undefined, log: driverLogText(undefined) }),
  };
}

/** What a `ProvisioningWaiting` event of this sidecar means; undefined for a text of another provisioner. */
export function waitMeaning(text: string): (Meaning & { state: 'waiting' | 'stuck' }) | undefined {
  for (const { name, waits = [] } of definitions) {
    const meaning = waits.find(({ pattern }) => pattern.test(text));
    if (meaning !== undefined) return { cause: name, cure: meaning.cure, state: meaning.state };
  }
  return undefined;
}
