/** What the error texts of storages, networks and clouds mean, for any call of a driver. */
import { lasting, unlessSaid } from '../texts.ts';
import type { TextPattern } from './cause.ts';

const vague = 'Internal|Unknown|Unavailable';
/** Many drivers send also these for all that fails at their storage. */
const loose = `${vague}|InvalidArgument|FailedPrecondition|NotFound`;
/** A provisioner that is no CSI driver, or the storage itself, has said it. */
const bare = String.raw`^(?!.*\bcode = \w+ desc = )`;

function errorWith(codes: string, words: readonly string[]): string {
  return String.raw`code = (?:${codes}) desc = .*?(?:${words.join('|')})`;
}

/** A text with a code that says nothing, and one of the words. */
export function vagueError(words: readonly string[]): RegExp {
  return new RegExp(errorWith(vague, words), 'is');
}

/** The same, or without any code. */
export function saidError(words: readonly string[]): RegExp {
  return new RegExp(`${errorWith(vague, words)}|${bare}.*?(?:${words.join('|')})`, 'is');
}

/** Of words that mean the same with nearly every code, and without one. */
export function looseError(words: readonly string[]): RegExp {
  return new RegExp(`${errorWith(loose, words)}|${bare}.*?(?:${words.join('|')})`, 'is');
}

/** What the storage has too little of, or allows too little of. */
const limitWords = [
  '(?<!Request)LimitExceeded',
  String.raw`\bquota`,
  'over ?limit',
  'no space left',
  String.raw`(?:insufficient|not enough) (?:\w+ )?(?:space|capacity|storage)`,
  'out of (?:space|capacity)',
  '(?:POOL|RESOURCES?)_EXHAUSTED',
  String.raw`\b(?:pool|cluster|datastore|osds?|storage) (?:is|are) full\b`,
  'maximum number of',
  String.raw`\bno space\b`,
  'capacity limit',
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

const rateWords = [
  'RequestLimitExceeded',
  'Throttl',
  'Too ?Many ?Requests',
  'rate[- ]?limit',
  'rate_?exceeded',
  'rate (?:has been )?exceeded',
];

const permissionWords = [
  'UnauthorizedOperation',
  'AccessDenied',
  'access denied',
  'permission denied',
  'AuthorizationFailed',
  'not ?authorized',
  'operation not permitted',
  'NoPermission',
  'permission to perform this operation was denied',
  String.raw`\b(?:Error|Status ?Code[=:]?|status(?: code)?:?|HTTP) ?403\b`,
  String.raw`\bexit status 13\b`,
  String.raw`\bret=-(?:1|13)\b`,
  String.raw`\bforbidden\b`,
];

/** Of a service account that stands for an account at the cloud. */
const identityWords = [
  'AssumeRole',
  'WebIdentity',
  'federated identity',
  String.raw`AADSTS700(?:021|024|0213)\b`,
  String.raw`iam\.serviceAccounts\.getAccessToken`,
];

/** Clouds forbid with these what the rights of an account would allow. */
const policyWords = [
  'DisallowedByPolicy',
  'authentication ?(?:is )?not ?permitted',
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
  'invalid credentials',
  '(?:authentication|login) fail',
  String.raw`(?:token|session|credentials?|password|key) (?:is|are|has) (?:invalid|not valid|expired)`,
  'Failed to refresh the Token',
  'incorrect user ?name or password',
  'AuthenticationFailed',
  String.raw`AADSTS70002\d\d`,
  String.raw`\b(?:secret|keys?|token)\b[^.]{0,80} (?:is|are|has) expired`,
  'failed to authenticate',
  String.raw`\b(?:status(?: code)?:?|HTTP) 401\b`,
  String.raw`\bunauthorized\b`,
];

/** What networks say of a host that is not reached. */
export const networkWords = [
  'no such host',
  'failed to resolve',
  'name or service not known',
  'name resolution',
  String.raw`\b(?:getaddrinfo|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|EHOSTUNREACH|ETIMEDOUT)\b`,
  'connection refused',
  'connection reset',
  'connection timed out',
  'i/o timeout',
  'no route to host',
  'network is unreachable',
  'resource temporarily unavailable',
];

/** The storage responds, and cannot work at the moment. */
const troubleWords = [
  String.raw`\b(?:status(?: code)?:?|HTTP) 50\d\b`,
  'Service ?Unavailable',
  'bad gateway',
  String.raw`\b(?:is|are) (?:sealed|in maintenance)\b`,
  'try again later',
  'input/output error',
];

/** A call of the driver to its storage has not ended in time. */
const timeoutWords = [
  'deadline exceeded',
  'context cancel',
  String.raw`\btime(?:d |-)?out\b(?!=)`,
  String.raw`\bstill (?:being )?creat`,
  String.raw`\b(?:in progress|ongoing|being deleted)\b`,
  'not active after',
];

const absentWords = [
  'not ?found',
  String.raw`\bno [\w ]+ found\b`,
  'does not exist',
  'no such ',
  String.raw`\b(?:could not be found|(?:could not|cannot|can't) find)\b`,
  String.raw`\bis not an? (?:dataset|directory|file ?system|pool)\b`,
  "does(?:n't| not) contain",
];

const noRoomCure =
  'The storage has no room, or a limit is reached: its administrator raises the limit or frees storage; or request less, or use another class';
const accountCure =
  'The account with which the driver uses the storage lacks a permission: its administrator grants what the message names, or a Secret or the configuration of the driver names another account';
const unreachableCure =
  'The driver does not reach its storage: check that it runs, its address (in the class, or in the configuration of the driver), DNS, network policies and firewalls';
export const slowCure = 'Nothing yet: the driver may still be at work, and is called again';
export const slowLateCure =
  'The storage does not respond to the driver in time: check that it works, and that the Pod of the driver reaches it (network policies, firewalls). If its work just takes longer, raise --timeout of the provisioner';

/** What the words of storages mean, of whatever call. */
export const storageErrors: readonly TextPattern[] = [
  { pattern: new RegExp(`${bare}.*?(?:${limitWords.join('|')})`, 'is'), cure: noRoomCure, log: true, byWords: true },
  {
    pattern: saidError(['failed calling webhook', 'no endpoints available for service']),
    cure: 'The webhook that the message names, often of the storage itself, has no Pod that answers: get its Pods running and ready; the driver is called again',
    log: true,
  },
  {
    pattern: saidError([String.raw`\bis (?:not (?:mounted|online|started)|down|offline)\b`]),
    cure: 'A part of the storage that the message names is down, or not mounted: its administrator brings it up, and the driver is called again',
    log: true,
    byWords: true,
  },
  {
    pattern: saidError(rateWords),
    cure: 'Nothing yet: the storage limits how often it is called, and the driver is called again',
    late: 'The storage limits how often it is called: find out what else calls it, or have its administrator raise the limit',
    log: true,
  },
  {
    pattern: saidError([String.raw`mount\.nfs4?:?.*access denied`]),
    cure: 'The NFS server does not export that path to the machine that mounts it: have it permit the address of the node on which the Pod of the driver runs, and check server and path in the class',
    log: true,
  },
  {
    pattern:
      /has not been used in project|SERVICE_DISABLED|accessNotConfigured|MissingSubscriptionRegistration|not registered to use namespace|OptInRequired|\bAPI\b.* (?:is )?(?:disabled|not enabled)/i,
    cure: 'The account at the cloud does not have that service switched on: its administrator enables the API or registers the service that the message names; some minutes later an attempt succeeds',
  },
  {
    pattern: looseError(policyWords),
    cure: 'A policy of the cloud or storage forbids this, whatever permissions the account of the driver has: ask its administrator for an exception, or change the parameters of the class (delete and recreate it)',
    log: true,
  },
  {
    pattern: looseError(identityWords),
    cure: 'The cloud does not let the service account of the driver use its role: check the trust that the role has in it (identity provider of the cluster, namespace and name of the service account), and the annotation of the service account that names the role',
    log: true,
  },
  {
    pattern: looseError([
      'get credentials: ',
      'IMDS role',
      'no (?:signing )?credentials',
      'NoCredentialProviders',
      'unable to locate credentials',
      'could not find default credentials',
      'lack of credentials',
    ]),
    cure: 'The driver has no credentials: give its service account a role (workload identity), name a Secret in its configuration, or let its Pod reach the metadata service of its machine; then restart its Pod',
    log: true,
  },
  { pattern: looseError(permissionWords), cure: accountCure, log: true, byWords: true, account: true },
  {
    pattern: looseError(credentialWords),
    cure: 'The storage does not accept the credentials of the driver: renew them, in its Secret or in its configuration, and restart its Pod if it reads them only once',
    log: true,
    byWords: true,
    account: true,
  },
  { pattern: looseError(certificateWords), cure: certificateCure('the driver'), log: true },
  { pattern: looseError(networkWords), cure: unreachableCure, log: true, byWords: true },
  {
    pattern: saidError(['read-only file ?system']),
    cure: 'The driver may only read the storage: export or mount it so that the driver can write, or repair it if errors have made it read-only',
    log: true,
  },
  {
    pattern: saidError([String.raw`\blicen[cs]es?\b`]),
    cure: 'The storage needs a license for this, or its license has expired: its administrator renews it, or the class does without that feature',
    log: true,
    byWords: true,
  },
];

/** The same, of words that say less: those of another meaning in the text count more. */
export const storageTroubles: readonly TextPattern[] = [
  {
    pattern: saidError(troubleWords),
    cure: 'Nothing yet: the storage does not work at the moment, and the driver is called again',
    late: 'The storage, or the service through which the driver uses it, does not work: its administrator must check it',
    log: true,
  },
  { pattern: saidError(timeoutWords), cure: slowCure, late: slowLateCure, log: true },
  {
    pattern: saidError([String.raw`\bmount(?:ing)? failed\b`, 'failed to mount', 'could not mount']),
    cure: 'The machine on which the driver runs cannot mount the storage: try that from its node, and check the path, the export or share, the firewall and the version of the protocol (mountOptions)',
    log: true,
    byWords: true,
  },
];

/** What to do about an error of another sidecar's driver, such as one of a snapshot, by its words; undefined: these say nothing. */
export function storageCure(text: string): string | undefined {
  const known = [...storageErrors, noRoomError, ...storageTroubles].find(({ pattern }) => pattern.test(text));
  if (known === undefined) return undefined;
  const { cure, late, byWords } = known;
  if (late !== undefined) return lasting(cure, late);
  return byWords === true ? unlessSaid(cure) : cure;
}

/** Says that another machine has the volume open. */
export const openElsewhere =
  /still being used|has watchers|(?:in use|opened|mapped|locked) (?:by|on) (?:another|other)/i;

/** The same, also with codes that many drivers send if the class names it. */
export const looselyAbsentError = looseError(absentWords);

/** Of a text about something that is not there. */
export const absentError = saidError(absentWords);

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

/** There is no room, or a limit is reached. */
export const noRoomError: TextPattern = {
  pattern: vagueError(limitWords),
  cure: noRoomCure,
  log: true,
  byWords: true,
};
