/** A failed attempt: the driver creates no such size, its Secret is missing or wrong, or the API server did not do what was requested. */
import { editDistance } from '../../base/edit-distance.ts';
import { shellCommand } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import { failedRequestOf, isPassing, isRejection } from '../../kube/client/request-failure.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { type Cause, defineCause, type TextPattern } from './cause.ts';
import { invalidWords } from './driver-error.ts';
import { absentError, looseError, vagueError } from './storage-words.ts';

/** The driver creates no volumes of the requested size. */
export const unsupportedSize = defineCause({
  name: 'unsupported-size',
  failures: [
    {
      // CSI specification, CreateVolume errors, "Unsupported capacity_range"
      pattern: /code = OutOfRange /,
      cure: 'Recreate the claim with a size that the driver supports; its message usually names the limits',
    },
    {
      pattern: looseError([
        'InvalidDiskSize',
        String.raw`(?:parameter|field|value) "?(?:size|capacity)"? (?:is )?(?:not valid|invalid)`,
        String.raw`\b(?:disk|volume|quota|requested|required)?[ _]?(?:size|bytes|capacity)\b[^.]{0,40} (?:is )?(?:not supported|invalid|too (?:small|large)|smaller than|larger than|should be between)`,
      ]),
      cure: 'Recreate the claim with a size that the storage supports; its documentation names the limits',
    },
    {
      pattern: /created volume capacity \S+ less than requested capacity /,
      cure: 'The driver created a volume that is smaller than requested, which violates the CSI specification, so the provisioner refused it: recreate the claim with a size that the driver creates exactly, and report this to the maintainers of the driver',
    },
  ],
});

const missingSecretCure =
  'Create the Secret, or correct the secret parameters of the class (delete the class and create it again)';

/** The driver needs a Secret that does not exist, or that the class names wrongly. */
export const secretMissing = defineCause({
  name: 'secret-missing',
  failures: [
    {
      pattern: /^error getting secret .* is forbidden: /s,
      cure: 'Permit the provisioner to get Secrets of that namespace: its log has the rule to add. Whether the Secret exists is not known',
    },
    { pattern: /^error getting secret .* not found/s, cure: missingSecretCure },
    {
      pattern: /^error resolving value .*invalid tokens: \["pvc\.annotations\['[^']+'\]"\]$/s,
      cure: 'Give the claim the annotation of which the class makes the name of a Secret: kubectl annotate pvc; the namespace of a Secret cannot be made of one',
    },
    {
      pattern: /^error resolving value /,
      cure: "Correct the template in the secret parameters of the class: delete it and create it again. It may contain ${pv.name}, ${pvc.namespace}, and in the name of the Secret also ${pvc.name} and ${pvc.annotations['KEY']}",
    },
    {
      pattern:
        /failed to get (default )?name and namespace template from params|is not a valid (secret|namespace) name/,
      cure: 'Correct the secret parameters of the class: delete it and create it again. Name and namespace of the Secret must both be given, and be valid',
    },
  ],
});

export function checkSecret({ secret }: ClaimFacts): Finding | undefined {
  if (secret === undefined) return undefined;
  const { reference, reading } = secret;
  const name = `${reference.namespace}/${reference.name}`;
  if (reading.kind === 'unreadable') {
    return { state: 'unknown', detail: `whether Secret ${name} exists is not visible: ${reading.why}` };
  }
  if (reading.kind === 'found') return { state: 'ok', detail: `Secret ${name} exists` };
  return {
    state: 'stuck',
    cause: 'secret-missing',
    message: `Secret ${name}, which the StorageClass names for the driver, does not exist.`,
    cure: missingSecretCure,
  };
}

/** The annotations of the claim that a template names and that the claim does not have; empty where it lacks anything else. */
export function missingAnnotations(text: string): string[] {
  const [, list = ''] = /error resolving value .*invalid tokens: \[(.*)\]$/s.exec(text) ?? [];
  const tokens = list.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  const keys = tokens.map((token) => /^"pvc\.annotations\['(.*)'\]"$/.exec(token)?.[1]);
  return keys.every((key) => key !== undefined) ? keys : [];
}

/** A template for the name of a Secret names annotations; one for its namespace must not. */
export function annotationCure(text: string, { claim, storageClass }: ClaimFacts): string | undefined {
  const keys = missingAnnotations(text);
  const { namespace = '', name } = claim.metadata;
  const parameters = Object.entries(found(storageClass)?.parameters ?? {});
  const isOfNamespace = parameters.some(
    ([key, value]) => key.endsWith('secret-namespace') && value.includes('pvc.annotations['),
  );
  if (keys.length === 0 || isOfNamespace) return undefined;
  const words = ['kubectl', 'annotate', 'pvc', name, '-n', namespace, ...keys.map((key) => `${key}=VALUE`)];
  const command = shellCommand(words);
  const cure = `The StorageClass makes the name of a Secret of the annotation ${keys.join(', ')}, which the claim does not have`;
  return command === undefined ? cure : `${cure}: ${command}`;
}

/** Codes with which drivers refuse what a Secret contains. */
const refused =
  /code = (InvalidArgument|Unauthenticated|PermissionDenied|FailedPrecondition|Internal|Unknown|NotFound) /;

/** What a writer has set (Kubernetes page "Server-Side Apply", "Field management"). */
interface WrittenFields {
  fieldsV1?: Record<string, object | undefined>;
}

/** Shorter names are similar by accident. */
const minLength = 4;

/** The names of the keys in the Secret of the claim: the managed fields name them, so no value is read. */
export function secretKeys({ secret }: ClaimFacts): string[] {
  const keys = new Set<string>();
  for (const { fieldsV1 } of (found(secret?.reading)?.metadata.managedFields ?? []) as WrittenFields[]) {
    for (const part of ['f:data', 'f:stringData']) {
      for (const field of Object.keys(fieldsV1?.[part] ?? {})) if (field.startsWith('f:')) keys.add(field.slice(2));
    }
  }
  return [...keys].sort();
}

/** What to do about an error of the driver that misses something in its Secret, or may; undefined: it has none, or is not about it. */
export function secretCure(
  text: string,
  facts: ClaimFacts,
): { cause: 'secret-content' | 'driver-error'; cure: string } | undefined {
  const keys = secretKeys(facts);
  if (keys.length === 0 || !refused.test(text) || facts.secret === undefined) return undefined;
  const { namespace, name } = facts.secret.reference;
  const words = text.match(/[A-Za-z0-9_.-]+/g) ?? [];
  for (const key of keys) {
    const meant = words.find((word) => isMisspelt(key, word.replace(/\.$/, '')));
    if (meant === undefined || keys.includes(meant)) continue;
    return {
      cause: 'secret-content',
      cure: `Secret ${namespace}/${name} has the key ${key}: if the driver needs ${meant}, rename that key`,
    };
  }
  if (!/secret|credential|key|token|password|user/i.test(text)) return undefined;
  return {
    cause: 'driver-error',
    cure: `Compare the keys of Secret ${namespace}/${name} (${keys.slice(0, 10).join(', ')}) with the documentation of the driver, and see the log of its controller`,
  };
}

const invalidError = vagueError(invalidWords);

/** What to do about a value of the class that the driver quotes as wrong; undefined: it quotes none. */
export function parameterCure(text: string, { storageClass }: ClaimFacts): string | undefined {
  const [, code, said = ''] = /code = (InvalidArgument|Internal|Unknown) desc = (.*)$/s.exec(text) ?? [];
  if (code !== 'InvalidArgument' && !invalidError.test(text) && !absentError.test(text)) return undefined;
  const quotes = said.match(/"[^"]+"|'[^']+'|\([^()]+\)|\[[^[\]]+\]/g)?.map((each) => each.slice(1, -1)) ?? [];
  // as in `diskCategory is cloud`
  quotes.push(...Array.from(said.matchAll(/(?:\bis|[=:]) ?([\w.-]*\w)/g), ([, word = '']) => word));
  const parameters = Object.entries(found(storageClass)?.parameters ?? {}).filter(
    ([key, value]) => !key.startsWith('csi.storage.k8s.io/') && value.length >= minLength,
  );
  const quoted =
    parameters.find(([, value]) => quotes.includes(value)) ??
    (code === 'InvalidArgument' ? bareParameter(said, parameters) : undefined);
  if (quoted === undefined) return undefined;
  const [key, value] = quoted;
  return `The error quotes ${shortValue(value)}, the value of the class parameter ${shortValue(key)}: correct the class (delete it and create it again), or the driver's configuration for that value. The claim can stay`;
}

/** As in `azureDisk - PremiumV2_LRS is not supported`; what the driver would take instead follows, and a condition comes first. */
function bareParameter(said: string, parameters: readonly [string, string][]): [string, string] | undefined {
  const [refusedPart = ''] = said.split(
    /(?:supported|allowed|valid|possible) (?:values|types)|(?:must be|expected) one of/i,
  );
  // a word that is in no sentence by accident
  const words = (refusedPart.match(/[\w.:/-]*\w/g) ?? []).filter((word) => /[\d_/]/.test(word));
  const last = words.findLast((word) => parameters.some(([, value]) => value === word));
  return parameters.find(([, value]) => value === last);
}

/** Whether two names differ by letter case, separators, or one or two letters. */
function isMisspelt(key: string, word: string): boolean {
  if (key === word || key.length < minLength || word.length < minLength) return false;
  const [a, b] = [key, word].map((each) => each.toLowerCase().replaceAll(/[_.-]/g, '')) as [string, string];
  if (`${a}s` === b || `${b}s` === a) return false; // a plural in a sentence
  return (
    a === b ||
    (Math.min(a.length, b.length) > minLength && editDistance(a, b, { swaps: true }) <= (a.length > 7 ? 2 : 1))
  );
}

const passingCure =
  'Usually nothing: a request to the API server failed, and is sent again. If it lasts, see whether the API server responds, and what is between it and the provisioner';
const webhookCure =
  'See whether the webhook that the message names runs: the API server calls it for each such request, which is sent again until that succeeds';

/** The API server does not find what serves a webhook: that does not pass by itself. */
export const webhookGone = /failed calling webhook .*service "[^"]+" not found/s;
const webhookGoneCure =
  'The Service of the webhook that the message names does not exist: reinstall it or, if it was removed on purpose, delete its webhook configuration, too: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations';

/** A request of the provisioner to the API server fails for a reason that passes, and is sent again. */
export const apiServer = defineCause({
  name: 'api-server',
  request: {
    is: isPassing,
    beatsTexts: true, // such as one about a Secret: nobody knows whether it exists
    cures: [
      { pattern: webhookGone, cure: webhookGoneCure },
      { pattern: /failed calling webhook /, cure: webhookCure },
      { pattern: /^/, cure: passingCure },
    ],
  },
  failures: [
    {
      pattern: new RegExp(`^Error creating provisioned PV object .*${webhookGone.source}`, 's'),
      cure: webhookGoneCure,
    },
    { pattern: /^Error creating provisioned PV object .*failed calling webhook /s, cure: webhookCure },
    { pattern: /^Error creating provisioned PV object /, cure: passingCure }, // those that are rejected come before
    { pattern: /^error getting secret /, cure: passingCure }, // one that is missing, or forbidden, comes before
    { pattern: /^(GET|POST|PUT|PATCH|DELETE) \S+: |^[a-z]+ [a-z]+: the response is /, cure: passingCure },
  ],
  waits: [
    {
      pattern: /^Waiting for the API server /,
      state: 'waiting',
      cure: 'Nothing to do about the claim; the API server is overloaded or unavailable',
    },
  ],
});

/** By texts, since a permission, a quota and a policy share the code 403, and a webhook chooses its own. */
const rejectionCures: readonly TextPattern[] = [
  {
    pattern: /exceeded quota: /,
    cure: 'Raise the quota that the message names, or delete what counts against it',
  },
  {
    pattern: /is forbidden: User /,
    cure: 'Permit the provisioner what the message names: its log has the rule to add',
  },
  {
    pattern: /(^|: )Unauthorized/,
    cure: 'Check the service account of the provisioner and its token, or the credentials in its kubeconfig: the API server does not accept them',
  },
  {
    pattern: /is forbidden|denied (the )?request|is invalid: /,
    cure: 'The API server does not accept what the provisioner writes, such as the PersistentVolume of a volume that the driver has created: correct what the message names, such as a policy or a webhook',
  },
];

/** The API server rejects a request of the provisioner: a permission is missing, or a policy, webhook or quota forbids it. */
export const rejected = defineCause({
  name: 'rejected',
  request: { is: isRejection, beatsTexts: false, cures: rejectionCures },
  failures: rejectionCures.map(({ pattern, cure }) => ({
    pattern: new RegExp(`^Error creating provisioned PV object .*?(${pattern.source})`, 's'),
    cure,
  })),
});

const ofRequests = [apiServer, rejected];

export interface RequestMeaning {
  cause: Cause;
  /** Without a full stop. */
  cure: string;
  /** Whether it counts also where the text looks like that of another cause. */
  beatsTexts: boolean;
}

/**
 * @param known.error - what the attempt failed with; undefined outside of the process that made it.
 * @param known.recorded - the cause that the event about it names.
 * @returns undefined where no request has failed, and for an object that does not exist.
 */
export function requestMeaning(
  text: string,
  { error, recorded }: { error?: unknown; recorded?: string | undefined },
): RequestMeaning | undefined {
  const failed = failedRequestOf(error);
  for (const { name, request } of ofRequests) {
    if (request === undefined || !(failed === undefined ? recorded === name : request.is(failed))) continue;
    const { cure = '' } = request.cures.find(({ pattern }) => pattern.test(text)) ?? request.cures.at(-1) ?? {};
    return { cause: name, cure, beatsTexts: request.beatsTexts };
  }
  return undefined;
}
