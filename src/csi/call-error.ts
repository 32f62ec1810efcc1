/** gRPC status codes, in the spelling of Go's gRPC library (gRPC, "Status codes and their use"). */
export const grpcCodes = {
  OK: 0,
  Canceled: 1,
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Aborted: 10,
  OutOfRange: 11,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  DataLoss: 15,
  Unauthenticated: 16,
} as const;

const codeNames = Object.keys(grpcCodes);

/** The name in events and metrics: `Code(<n>)` for a number gRPC does not know. */
export function codeName(code: number): string {
  return codeNames[code] ?? `Code(${code})`;
}

/** A call to the driver that did not end with OK. The message is `rpc error: code = <Name> desc = <text>`. */
export class CsiCallError extends Error {
  override readonly name: string = 'CsiCallError';
  readonly code: number;
  readonly codeName: string;
  /** The driver's own words, or those of the transport. */
  readonly details: string;
  /** False when the request never left this process: whatever the code is, the driver never received the call. */
  readonly sent: boolean;

  /** @param options.sent - default true: without certainty the driver may have the request. */
  constructor(code: number, details: string, { sent = true, ...options }: { cause?: unknown; sent?: boolean } = {}) {
    super(`rpc error: code = ${codeName(code)} desc = ${details}`, options);
    this.sent = sent;
    this.code = code;
    this.codeName = codeName(code);
    this.details = details;
  }
}

/** A call whose status or response did not arrive although the driver ended it: its outcome is unknown. */
export class LostStatusError extends CsiCallError {
  override readonly name = 'LostStatusError';
}

/** The text of anything thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
