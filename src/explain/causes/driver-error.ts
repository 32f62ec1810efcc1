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

const vague = String.raw`code = (?:Internal|Unknown|Unavailable) desc = .*?`;

/** A text with a code that says nothing, and one of the words. */
export function vagueError(words: readonly string[]): RegExp {
  return new RegExp(`${vague}(?:${words.join('|')})`, 'is');
}

/** What the storage has too little of, or allows too little of. */
export const limitWords = [
  '(?<!Request)LimitExceeded',
  String.raw`\bquota`,
  'over ?limit',
  'no space left',
  String.raw`(?:insufficient|not enough) (?:\w+ )?(?:space|capacity|storage)`,
  'out of (?:space|capacity)',
  '(?:POOL|RESOURCES?)_EXHAUSTED',
  String.raw`\b(?:pool|cluster|datastore|osds?|storage) (?:is|are) full\b`,
  'maximum number of',
];

/** A cloud has none left for anybody, whatever an account may have. */
export const stockWords = [
  'ZONE_RESOURCE_POOL_EXHAUSTED',
  'not have enough resources',
  'SkuNotAvailable',
  'AllocationFailed',
  'AllocationRequest',
  'InsufficientVolumeCapacity',
  'out of stock',
];

const rateWords = ['RequestLimitExceeded', 'Throttl', 'TooManyRequests', 'too many requests', 'rate ?limit'];

const permissionWords = [
  'UnauthorizedOperation',
  'AccessDenied',
  'access denied',
  'permission denied',
  'AuthorizationFailed',
  'not authorized',
  'operation not permitted',
  'NoPermission',
  'permission to perform this operation was denied',
  'Error 403',
  String.raw`\bforbidden\b`,
];

/** Of a service account that stands for an account at the cloud. */
const identityWords = [
  'AssumeRole',
  'WebIdentity',
  'federated identity',
  String.raw`AADSTS70\d+`,
  String.raw`iam\.serviceAccounts\.getAccessToken`,
];

/** Clouds forbid with these what the rights of an account would allow. */
const policyWords = [
  'DisallowedByPolicy',
  'disallowed by policy',
  'explicit deny in an? (?:service|resource) control policy',
  String.raw`constraint constraints/\S+ violated`,
  'violates (?:constraint|organization policy)',
];

const certificateWords = [
  'x509: ',
  'certificate (?:has expired|verify failed|signed by)',
  'verify certificate',
  'bad certificate',
];

const credentialWords = [
  'InvalidClientTokenId',
  'ExpiredToken',
  'NoCredentialProviders',
  'invalid credentials',
  '(?:authentication|login) fail',
  String.raw`(?:token|session|credentials?|password|key) (?:is|are|has) (?:invalid|not valid|expired)`,
  'Failed to refresh the Token',
  'incorrect user ?name or password',
  'get credentials: ',
  String.raw`\b(?:status(?: code)?:?|HTTP) 401\b`,
  String.raw`\bunauthorized\b`,
];

/** What networks say of a host that is not reached. */
export const networkWords = [
  'no such host',
  String.raw`\b(?:getaddrinfo|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|EHOSTUNREACH|ETIMEDOUT)\b`,
  'connection refused',
  'connection reset',
  'connection timed out',
  'i/o timeout',
  'no route to host',
  'network is unreachable',
];

/** The storage responds, and cannot work at the moment. */
const troubleWords = [
  String.raw`\b(?:status(?: code)?:?|HTTP) 50\d\b`,
  'Service ?Unavailable',
  'bad gateway',
  String.raw`\b(?:is|are) (?:sealed|in maintenance)\b`,
  'try again later',
];

/** A call of the driver to its storage has not ended in time. */
const timeoutWords = ['deadline exceeded', String.raw`\btime(?:d |-)?out\b`];

/** The storage has nothing for what is asked, however much room there is. */
const misfitWords = [
  String.raw`(?:\bno|(?:\bno|\bnot|n't) f(?:ind|ound) (?:an?|any)) (?:(?:available|compatible|eligible|matching|online|suitable|valid) )?(?:aggregate|backend|datastore|host|(?:storage )?pool|storage system|vg|volume group)s?\b`,
  'no valid (?:host|backend) was found',
];

const modes = String.raw`(?:access ?modes?|Read(?:Write|Only)(?:Once|Many)|(?:MULTI|SINGLE)_NODE_\w+|multi-?node)`;
const modeRefusals = String.raw`(?:\bonly (?:\w+ )?support|\bnot (?:\w+ )?support|unsupported|not allowed|\binvalid)`;
/** In either order. */
const accessModeError = new RegExp(`${modes}.*${modeRefusals}|${modeRefusals}.*${modes}`, 'is');

const existsWords = [String.raw`(?<!operation.*)\balready (?:exists?|taken)\b`, 'file exists'];

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
  'unknown (?:field|option|parameter)',
];

const absentWords = [
  'not ?found',
  String.raw`\bno [\w ]+ found\b`,
  'does not exist',
  'no such ',
  'could not (?:be found|find)',
];

const accountCure =
  'The account with which the driver uses the storage lacks a permission: its administrator grants what the message names, or a Secret or the configuration of the driver names another account';
const unreachableCure =
  'The driver does not reach its storage: check the address (in the class, or in the configuration of the driver), DNS, network policies and firewalls';
const absentCure =
  'The storage does not have what the class or the configuration of the driver names, such as a pool, a share or a zone: create that, or correct the class (delete it and create it again)';

const slowCure = 'Nothing yet: the driver may still be at work, and is called again';
const slowLateCure =
  'The storage does not respond to the driver in time: check that it works, and that the Pod of the driver reaches it (network policies, firewalls). If its work just takes longer, raise --timeout of the provisioner';
const existsCure =
  'The storage has another volume of this name: if nobody needs it, delete it there; or recreate the claim, so that its volume gets another name';

/** What the words of storages mean, of whatever call. */
export const storageErrors: readonly TextPattern[] = [
  {
    pattern: vagueError(rateWords),
    cure: 'Nothing yet: the storage limits how often it is called, and the driver is called again',
    late: 'The storage limits how often it is called: find out what else calls it, or have its administrator raise the limit',
    log: true,
  },
  {
    pattern: vagueError([String.raw`mount\.nfs4?:?.*access denied`]),
    cure: 'The NFS server does not export that path to the machine that mounts it: have it permit the address of the node on which the Pod of the driver runs, and check server and path in the class',
    log: true,
  },
  {
    pattern: vagueError(policyWords),
    cure: 'A policy of the cloud or storage forbids this, whatever permissions the account of the driver has: its administrator makes an exception, or the parameters of the class are made to follow it (delete the class and create it again)',
    log: true,
  },
  {
    pattern: vagueError(identityWords),
    cure: 'The cloud does not let the service account of the driver use its role: check the trust that the role has in it (identity provider of the cluster, namespace and name of the service account), and the annotation of the service account that names the role',
    log: true,
  },
  { pattern: vagueError(permissionWords), cure: accountCure, log: true, byWords: true, account: true },
  {
    pattern: vagueError(credentialWords),
    cure: 'The storage does not accept the credentials of the driver: renew them, in its Secret or in its configuration, and restart its Pod if it reads them only once',
    log: true,
    byWords: true,
    account: true,
  },
  { pattern: vagueError(certificateWords), cure: certificateCure('the driver'), log: true },
  { pattern: vagueError(networkWords), cure: unreachableCure, log: true, byWords: true },
  {
    pattern: vagueError(troubleWords),
    cure: 'Nothing yet: the storage does not work at the moment, and the driver is called again',
    late: 'The storage, or the service through which the driver uses it, does not work: its administrator sees why',
    log: true,
  },
  { pattern: vagueError(timeoutWords), cure: slowCure, late: slowLateCure, log: true },
  {
    pattern: vagueError(['read-only file ?system']),
    cure: 'The driver may only read the storage: export or mount it so that the driver can write, or repair it if errors have made it read-only',
    log: true,
  },
  {
    pattern: vagueError([String.raw`\blicen[cs]es?\b`]),
    cure: 'The storage needs a licence for this, or its licence has ended: its administrator renews it, or the class does without that feature',
    log: true,
    byWords: true,
  },
];

/** What they mean of a volume that is to be created. */
const creationErrors: readonly TextPattern[] = [
  ...storageErrors,
  {
    pattern: vagueError(misfitWords),
    cure: 'No storage that the driver knows fits what the class asks for, is online, and accepts the account of the driver: correct the class (delete it and create it again), or the storage so that it fits',
    log: true,
    byWords: true,
    parameters: true,
  },
  {
    pattern: vagueError([String.raw`InvalidVolume\.NotFound`]),
    cure: 'The storage lost the volume while creating it; its own log (at AWS: CloudTrail) says why: often the account of the driver may not use the encryption key',
    log: true,
  },
  { pattern: vagueError(existsWords), cure: existsCure, log: true, byWords: true },
  { pattern: vagueError(absentWords), cure: absentCure, log: true, byWords: true },
  {
    pattern: vagueError(invalidWords),
    cure: 'The storage does not accept a value that the message names, such as a type or a zone. If the class has it, correct the class (delete it and create it again); if the claim has it, recreate the claim; else correct the configuration of the driver',
    log: true,
    byWords: true,
    parameters: true,
  },
];

/** Says that another machine has the volume open. */
export const openElsewhere =
  /still being used|has watchers|(?:in use|opened|mapped|locked) (?:by|on) (?:another|other)/i;

/** Of a text about something that is not there. */
export const absentError = vagueError(absentWords);

/** @param who - does not trust the certificate. */
export function certificateCure(who: string): string {
  return `The storage answers, but ${who} does not accept its certificate: renew it there if it has expired, give ${who} its authority or the name for which it is valid, and check the clocks`;
}

/** The driver itself does not respond, in the words of this sidecar, of the Go one, or of gRPC: not its storage. */
export const driverAway: TextPattern = {
  pattern: /code = Unavailable .*(?:\.sock|not connected|dial unix|error reading from server)/s,
  cure: "Check that the driver's container runs beside the sidecar",
  log: true,
};

/** No words say whether that is the driver or its storage. */
export const unavailable: TextPattern = {
  pattern: /code = Unavailable /,
  cure: "Check that the driver's container runs beside the sidecar, and that the storage behind it responds",
  log: true,
};

/** Provisioners of local paths have a Pod do the work. */
export const helperError: TextPattern = {
  pattern: /(?:create|delete) process timeout|helper[ -]?pod/i,
  cure: 'The provisioner has a helper Pod do this on the node, and that did not end in time: see why, such as an image that is not pulled, or a taint: kubectl get pods -A | grep helper',
};

/** The attempt fails in the driver or the provisioner. */
export const driverError = defineCause({
  name: 'driver-error',
  failures: [
    driverAway,
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
      pattern: /infeasible error|code = InvalidArgument /,
      cure: 'The driver cannot create such a volume: recreate the claim with other values. If the class is wrong, delete it and create it again before',
    },
    {
      pattern: /\bno (?:available |matching |suitable )?topolog|accessibility requirements?|match\w* topology/i,
      cure: 'The driver finds no place for the volume: compare allowedTopologies of the class, and the nodes that the Pod may use, with the topology keys that its node plugin has registered: kubectl get csinodes -o yaml',
      log: true,
      byWords: true,
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
    helperError,
    ...creationErrors,
    unavailable,
    {
      pattern: /^An earlier attempt may have left a volume/,
      cure: 'See "A record that is stuck" in docs/troubleshooting.md',
    },
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

/** @returns undefined for a driver that has said what is missing, and nothing about limits. */
export const noRoomError: TextPattern = {
  pattern: vagueError(limitWords),
  cure: 'The storage has no room, or a limit is reached: its administrator raises the limit or frees storage; or request less, or use another class',
  log: true,
  byWords: true,
};
