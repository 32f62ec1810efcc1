import type { Resource, Status } from '../kube-object.ts';
import { MalformedMessageError } from '../protobuf/message-decoder.ts';

/** The request of a failed response: enough to name the missing permission. */
export interface RequestInfo {
  /** RBAC verb: get, list, watch, create, update, patch, delete. */
  verb: string;
  resource: Resource;
  namespace?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
  /** The caller can do without the response where the request is forbidden; `reported`: and reports that itself. */
  optional?: boolean | 'reported' | undefined;
}

/**
 * A failure response of the API server. Subclasses name the common ones; `reason` decides, the HTTP code counts only
 * where it is missing or none of the API's own. The message is the server's own.
 */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  readonly code: number;
  readonly reason: string;
  readonly status: Status;
  readonly request: RequestInfo;
  /** Seconds of a `Retry-After` header, when it was a whole number. */
  readonly retryAfterS: number | undefined;

  constructor(status: Status, request: RequestInfo, retryAfterS?: number) {
    super(status.message ?? `the server responded with ${status.code ?? 'without a code'}`);
    this.status = status;
    this.code = status.code ?? 0;
    this.reason = status.reason ?? '';
    this.request = request;
    this.retryAfterS = retryAfterS;
  }

  /** True when one of the causes has this type, such as `ResourceVersionTooLarge`. */
  hasCause(type: string): boolean {
    return this.status.details?.causes?.some((cause) => cause.reason === type) ?? false;
  }
}

/** The object, or the whole resource, does not exist. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError';
}

/** An object of this name exists already. A bare 409 is not enough: updates return 409 too. */
export class AlreadyExistsError extends ApiError {
  override readonly name = 'AlreadyExistsError';
}

/** The object changed since it was read: read again, decide again. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError';
}

/** The requested resource version has been compacted: list again. */
export class ExpiredError extends ApiError {
  override readonly name = 'ExpiredError';
}

/** The server does not accept the credentials: they are missing, wrong or expired. */
export class UnauthorizedError extends ApiError {
  override readonly name = 'UnauthorizedError';
}

/** The server refuses the request: a permission is missing (RBAC), or admission rejected the object. */
export class ForbiddenError extends ApiError {
  override readonly name = 'ForbiddenError';

  /**
   * Whether an admission plugin or webhook rejected it, such as a quota, which no RBAC rule changes. A refusal by the
   * authorizer names the user instead (Kubernetes, "Authorization" and "Admission Control").
   */
  get isAdmission(): boolean {
    return this.hasCause('NamespaceTerminating') || /^admission webhook |is forbidden: (?!user )/i.test(this.message);
  }

  /** The RBAC rule to add, as YAML ready for a Role or ClusterRole, with all verbs that the resource is used with. */
  get missingRule(): string {
    const { resource, verb, subresource } = this.request;
    if (resource.version === '') return rule({ nonResourceURLs: [resource.plural], verbs: [verb] });
    const isRead = verb === 'list' || verb === 'watch'; // a cache needs both
    const declared = subresource === undefined ? (resource.verbs ?? []) : [];
    return rule({
      apiGroups: [resource.group],
      resources: [subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`],
      verbs: [...new Set([...declared, ...(isRead ? ['list', 'watch'] : [verb])])],
    });
  }
}

function rule(fields: Record<string, string[]>): string {
  const lines = Object.entries(fields).map(([name, values]) => {
    return `${name}: [${values.map((value) => JSON.stringify(value)).join(', ')}]`;
  });
  return `- ${lines.join('\n  ')}`;
}

/** The server is overloaded, or limits this client (429). */
export class TooManyRequestsError extends ApiError {
  override readonly name = 'TooManyRequestsError';
}

/** Validation rejected the object (422). */
export class InvalidError extends ApiError {
  override readonly name = 'InvalidError';
}

/**
 * The request never got a response: refused, reset, timed out. After a write that was sent the outcome is unknown: read
 * before you decide.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  /** Node's or undici's code, such as `ECONNREFUSED` or `UND_ERR_SOCKET`. */
  readonly code: string;
  /** False: the request did not leave the process, so nothing happened. Default true. */
  readonly sent: boolean;

  constructor(message: string, options: { code: string; sent?: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.code = options.code;
    this.sent = options.sent ?? true;
  }
}

/**
 * A response that could not be read, as a `TransportError`: `BAD_JSON` or `BAD_PROTOBUF`; other errors as they are.
 *
 * @param what - the response, for the message.
 */
export function asGarbled(error: unknown, what: string): unknown {
  const code = error instanceof SyntaxError ? 'BAD_JSON' : 'BAD_PROTOBUF';
  if (code === 'BAD_PROTOBUF' && !(error instanceof MalformedMessageError)) return error;
  return new TransportError(`${what} is truncated or garbled`, { code, cause: error });
}

/** Whether there was a response that could not be read. */
export function isGarbled(error: unknown): error is TransportError {
  return error instanceof TransportError && (error.code === 'BAD_JSON' || error.code === 'BAD_PROTOBUF');
}

/** The requested resource version is ahead of this server, or of its etcd: list again without one. */
function isTooLargeResourceVersion(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.hasCause('ResourceVersionTooLarge')) return true;
  return /too large resource version|required revision is a future revision/i.test(error.message);
}

/**
 * Whether the same request will be refused again for its content: a 4xx other than 401, 403, 408, 409 and 429, which may
 * go away without a change of the request.
 */
export function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code >= 400 && error.code < 500 && !transientCodes.has(error.code);
}

const transientCodes: ReadonlySet<number> = new Set([401, 403, 408, 409, 429]);

/**
 * Whether a POST has certainly not been carried out, and will not be: it was never sent, or the API server itself, not a proxy
 * in front of it, rejected it. After a timeout, a 5xx or a conflict this is not known; the transport does not repeat it then.
 */
export function isNotCarriedOut(error: unknown): boolean {
  if (error instanceof TransportError) return !error.sent;
  if (!(error instanceof ApiError) || error.status.kind !== 'Status') return false;
  return (
    rejectingCodes.has(error.code) || isDeniedByWebhook(error) || error.message.includes('failed calling webhook "')
  );
}

const rejectingCodes: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 406, 413, 415, 422, 429]);

/** Webhooks are called before anything is stored, and choose the code themselves (Kubernetes, "Dynamic Admission Control"). */
export function isDeniedByWebhook({ message }: ApiError): boolean {
  return /^admission webhook ".*" denied the request/.test(message);
}

/** Whether the server does not serve the resource at all: a 404 that names no object. */
export function isUnservedResource(error: unknown): boolean {
  return error instanceof NotFoundError && (error.status.details?.name ?? '') === '';
}

/** A successful response of another kind than the requested one, such as a list that a proxy has converted to a table. */
export function unexpectedKind(kind: string | undefined, expected: string, request: RequestInfo): ApiError {
  const message = `expected a ${expected}, got ${JSON.stringify(kind)}`;
  return new ApiError({ message, reason: 'UnexpectedKind', code: 200 }, request);
}

/** Whether the server no longer has the requested resource version, does not have it yet, or cannot make anything of it. */
export function isVersionUnavailable(error: unknown): boolean {
  return error instanceof ExpiredError || isTooLargeResourceVersion(error) || isInvalidResourceVersion(error);
}

/** A list that something has spoiled on its way may have brought such a version. */
function isInvalidResourceVersion(error: unknown): boolean {
  return error instanceof ApiError && error.code === 400 && /invalid resource version/i.test(error.message);
}

/** Connection refused: the server is not up, nothing was sent. */
export function isConnectionRefused(error: unknown): boolean {
  return error instanceof TransportError && error.code === 'ECONNREFUSED';
}
