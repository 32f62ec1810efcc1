import { status } from '@grpc/grpc-js';

/** A gRPC status by its name, such as `NOT_FOUND`. */
export type CodeName = Exclude<keyof typeof status, 'OK'>;

/** Ends a call with a status other than OK; the message goes to the caller as it is. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly codeName: CodeName;

  constructor(codeName: CodeName, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.codeName = codeName;
  }

  /** The number grpc-js sends. */
  get code(): status {
    return status[this.codeName];
  }
}

/** Whether `name` is a gRPC status that a call can fail with. */
export function isCodeName(name: unknown): name is CodeName {
  return typeof name === 'string' && name !== 'OK' && Object.hasOwn(status, name) && Number.isNaN(Number(name));
}
