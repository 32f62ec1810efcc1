/** gRPC status codes by number, in the spelling of Go's gRPC library (gRPC, "Status codes and their use"). */
const codeNames = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
] as const;

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
