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
export type StatusReason = keyof typeof reasonCodes | '' | (string & Record<never, never>);

/** One cause in `details.causes`. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** `details` of a Status: which object, which causes, when to come back. */
export interface StatusDetails {
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
