import { qualifiedResource, type ResourceType } from './resource-type.ts';

/** HTTP codes of the machine-readable reasons (Kubernetes API conventions, "Response Status Kind"). */
const reasonCodes = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServerTimeout: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const;

/** A machine-readable reason of a failure; empty where the API gives none. Others exist, by injected faults only. */
type StatusReason = keyof typeof reasonCodes | '' | (string & Record<never, never>);

/** One cause in `details.causes`. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** `details` of a Status: which object, which causes, when to come back. */
interface StatusDetails {
  name?: string;
  group?: string;
  /** The resource in lower-case plural for most reasons, the kind for `Invalid`. */
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/** A failed API call: what HTTP clients get as a `Status` body and in-process callers as an exception. */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly reason: StatusReason;
  readonly code: number;
  readonly details: StatusDetails | undefined;
  /** Token for the rest of a list whose snapshot is gone. */
  readonly continueToken: string | undefined;

  constructor(
    reason: StatusReason,
    message: string,
    options: { code?: number; details?: StatusDetails; continueToken?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.code = options.code ?? (reasonCodes as Partial<Record<string, number>>)[reason] ?? 500;
    this.details = options.details;
    this.continueToken = options.continueToken;
  }

  /** The body an HTTP client gets. */
  toStatus(): object {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continueToken === undefined ? {} : { continue: this.continueToken },
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

/** The 404 for a missing object. */
export function notFound(type: ResourceType, name: string): StatusError {
  return new StatusError('NotFound', `${qualifiedResource(type)} ${JSON.stringify(name)} not found`, {
    details: { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural },
  });
}

/** The 404 for a path that leads nowhere. */
export function noSuchPath(): StatusError {
  return new StatusError('NotFound', 'the server could not find the requested resource', { details: {} });
}

/** The 409 for a write that does not fit what is stored. */
export function conflict(type: ResourceType, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedResource(type)} ${JSON.stringify(name)}: ${why}`;
  return new StatusError('Conflict', message, {
    details: { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural },
  });
}

/** The 409 for a name that is taken. */
export function alreadyExists(type: ResourceType, name: string): StatusError {
  return new StatusError('AlreadyExists', `${qualifiedResource(type)} ${JSON.stringify(name)} already exists`, {
    details: { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural },
  });
}
