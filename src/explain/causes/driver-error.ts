/**
 * What an error of the driver means, and for whom (CSI specification, "Error Scheme" and "CreateVolume Errors"). Many drivers have
 * one code, Internal or Unknown, for everything, and some Unavailable for all that may pass: then words decide that are usual at
 * storages. Of a wrapped error the inner code counts, as the codes that say something come before these.
 */
import { attempts, type FailedAttempt } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { isClaim, isSnapshot } from '../source-facts-reader.ts';
import { type Cause, defineCause, type TextPattern } from './cause.ts';
import { sourceName } from './source.ts';
import {
  driverAway,
  helperError,
  looselyAbsentError,
  looseError,
  saidError,
  slowCure,
  slowLateCure,
  storageErrors,
  storageTroubles,
  unavailable,
  vagueError,
} from './storage-words.ts';

/** The storage has nothing for what is asked, however much room there is. */
const misfitWords = [
  String.raw`(?:\bno|(?:\bno|\bnot|n't|cannot) f(?:ind|ound)(?: an?| any)?|not enough) (?:[\w-]+ ){0,4}(?:aggregate|backend|datastore|host|pool|storage system|vg|volume group)s?\b`,
  'no (?:available )?storage (?:could|in zone)',
  'no valid (?:host|backend) was found',
];

const modes = String.raw`(?:access ?modes?|\bR(?:WX|WO|WOP|OX)\b|Read(?:Write|Only)(?:Once|Many)|(?:MULTI|SINGLE)_NODE_\w+|multi-?node)`;
const modeRefusals = String.raw`(?:\bonly (?:\w+ )?support|\bnot (?:\w+ )?support|unsupported|not allowed|\binvalid)`;
/** In either order. */
const accessModeError = new RegExp(`${modes}.*${modeRefusals}|${modeRefusals}.*${modes}`, 'is');

const existsWords = [String.raw`(?<!operation.*)(?:\balready (?:exists?|taken)|AlreadyExists)\b`, 'file exists'];

/** The storage does not accept a value, such as a type or a zone. */
export const invalidWords = [
  'bad ?request',
  'InvalidParameter',
  'invalid (?:input|parameter|value)',
  String.raw`\bis (?:invalid|not (?:valid|supported))`,
  String.raw`\.NotSupported`,
  String.raw`\bunsupported`,
  String.raw`\bmust be\b`,
  'does not match',
  'invalid argument',
  'unknown (?:field|option|parameter)',
];

const absentCure =
  'The storage does not have what the class or the configuration of the driver names, such as a pool, a share or a zone: create that, or correct the class (delete it and create it again)';

const existsCure =
  'The storage has another volume of this name: if nobody needs it, delete it there; or recreate the claim, so that its volume gets another name';

/** What they mean of a volume that is to be created. */
const creationErrors: readonly TextPattern[] = [
  {
    pattern: looseError(misfitWords),
    cure: 'No storage that the driver knows fits what the class asks for, is online, and accepts the account of the driver: correct the class (delete it and create it again), or the storage so that it fits',
    log: true,
    byWords: true,
    parameters: true,
  },
  {
    pattern: saidError([String.raw`InvalidVolume\.NotFound`]),
    cure: 'The storage lost the volume while creating it; its own log (at AWS: CloudTrail) says why: often the account of the driver may not use the encryption key',
    log: true,
  },
  { pattern: saidError(existsWords), cure: existsCure, log: true, byWords: true },
  { pattern: looselyAbsentError, cure: absentCure, log: true, byWords: true },
  {
    pattern: saidError(invalidWords),
    cure: 'The storage does not accept a value that the message names, such as a type or a zone. If the class has it, correct the class (delete it and create it again); if the claim has it, recreate the claim; else correct the configuration of the driver',
    log: true,
    byWords: true,
    parameters: true,
  },
];

/** The attempt fails in the driver or the provisioner. */
export const driverError = defineCause({
  name: 'driver-error',
  failures: [
    {
      pattern: /^An earlier attempt may have left a volume/,
      cure: 'See "A record that is stuck" in docs/troubleshooting.md',
    },
    driverAway,
    helperError,
    {
      pattern: /code = (DeadlineExceeded|Canceled) /,
      cure: slowCure,
      late: slowLateCure,
      log: true,
    },
    {
      pattern: /code = Aborted /,
      cure: 'Nothing yet: the driver is still at work on an earlier call, and is called again',
      late: 'An earlier call hangs in the driver, usually as the storage does not respond: see why, and then restart the Pod of the driver',
      log: true,
    },
    ...storageErrors,
    {
      pattern: /code = (Unauthenticated|PermissionDenied) /,
      cure: "Check the credentials and permissions with which the driver uses the storage: in the Secret that the class names, or in the driver's own configuration",
    },
    {
      pattern: /code = InvalidArgument .*(secret|credential)/is,
      cure: 'Compare the keys of the Secret that the class names with the documentation of the driver; csi-provisioner why, with the permission to get the Secret, lists those that it has',
    },
    {
      pattern: /code = AlreadyExists /,
      cure: existsCure,
    },
    {
      pattern: /no node was specified/,
      cure: 'The provisioner creates volumes on the node of a Pod: create the class again with volumeBindingMode WaitForFirstConsumer (delete it before), and recreate the claim',
    },
    {
      pattern: accessModeError,
      cure: 'The storage does not have volumes with the access mode that the claim requests: recreate the claim with one that the message names, usually ReadWriteOnce, or with a class for shared files',
    },
    {
      pattern:
        /code = InvalidArgument .*(?:must be (?:set|specified|provided)|(?:is|are) (?:missing|required|not set|not specified)|missing (?:required )?parameter)/is,
      cure: 'The driver lacks a value, usually a parameter of the class: delete the class and create it again with that parameter. The claim can stay',
      byWords: true,
    },
    {
      pattern: /code = InvalidArgument .*(?:\bparameter|storage ?class\b)/is,
      cure: 'A parameter of the class is wrong: delete the class and create it again with the right one. The claim can stay',
      byWords: true,
      parameters: true,
    },
    {
      pattern:
        /\bno (?:available |matching |suitable )?topolog|accessibility requirements?|match\w* topology|not able to select a node|zones? from topology/i,
      cure: 'The driver finds no place for the volume: compare allowedTopologies of the class, and the nodes that the Pod may use, with the topology keys that its node plugin has registered: kubectl get csinodes -o yaml',
      log: true,
      byWords: true,
    },
    ...creationErrors,
    ...storageTroubles,
    {
      pattern: /infeasible error|code = InvalidArgument /,
      cure: 'The driver cannot create such a volume: recreate the claim with other values. If the class is wrong, delete it and create it again before',
    },
    {
      pattern: /code = FailedPrecondition /,
      cure: 'The state of the storage, or a policy there, does not allow the volume: its administrator does what the message says',
      log: true,
    },
    { pattern: /code = NotFound /, cure: absentCure, log: true },
    {
      pattern: /code = Unimplemented |does not support .* capability is not reported$/s,
      cure: 'The driver cannot do this, and further attempts do not change it: use a class of another driver, or recreate the claim without what the message names',
    },
    {
      pattern: /code = DataLoss /,
      cure: 'The storage reports data that is lost or damaged: its administrator has to look at it',
      log: true,
    },
    unavailable,
    { pattern: /(?:)/, cure: '', log: true },
  ],
});

export function checkFailed(facts: ClaimFacts): FailedAttempt | undefined {
  const { failed } = attempts(facts);
  return failed && { failed };
}

/** The same in words, of drivers that have one code for everything. */
const lostSource = vagueError([
  String.raw`InvalidSnapshot\.NotFound`,
  String.raw`(?:snapshot|source volume|parent image)\b[^.]* (?:not found|does not exist|could not be found)`,
]);

/** The storage would copy the source in another state: attached, detached, whole. */
const unfitSource = vagueError([
  String.raw`(?:source|clon|snapshot|backup)\w*\b.*(?:\bnot (?:running|attached|detached|ready|healthy)|\bis (?:attached|detached|in use|degraded|faulted)|\bmust be (?:attached|detached))`,
]);

/** With a data source these codes are about it: it does not fit, or is gone although its object exists. */
export function sourceRefusal(text: string, { source }: ClaimFacts): (TextPattern & { cause: Cause }) | undefined {
  if (source === undefined || !(isClaim(source) || isSnapshot(source))) return undefined;
  const pattern = /code = (NotFound|InvalidArgument) /;
  const [, code] = pattern.exec(text) ?? [];
  if (code === 'NotFound') {
    return {
      ...{ pattern, cause: 'source-missing' },
      cure: `The storage no longer has what ${sourceName(source)} stands for, or not where the driver looks: recreate the claim with another source`,
      log: true,
    };
  }
  if (code === undefined && lostSource.test(text)) {
    return {
      ...{ pattern: lostSource, cause: 'source-missing' },
      cure: `The storage no longer has what ${sourceName(source)} stands for: recreate the claim with another source`,
      log: true,
    };
  }
  if (code === undefined && unfitSource.test(text)) {
    return {
      ...{ pattern: unfitSource, cause: 'source-not-ready' },
      cure: `The storage cannot copy ${sourceName(source)} in the state that it has there. Bring that about which the message asks for, such as a Pod that uses the source (then it is attached and runs) or none, and the volume is created`,
      log: true,
    };
  }
  if (code === undefined || !/source|snapshot|clone|restore|content/i.test(text)) return undefined;
  return {
    ...{ pattern, cause: 'driver-error' },
    cure: `The driver cannot create such a volume from ${sourceName(source)}: recreate the claim with the class, size and volumeMode of its source, or with another source`,
  };
}
