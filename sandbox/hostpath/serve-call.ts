import { appendFileSync } from 'node:fs';
import type { handleUnaryCall, sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import type { Clock } from '../../src/base/clock.ts';
import { CallError } from './call-error.ts';
import { type Fault, isHeld, takeFault } from './faults.ts';

/** How often a call that is held reads the file, in milliseconds. */
const holdPollMs = 20;

/** What stands around every call. */
export interface ServeOptions {
  faultsFile: string;
  /** The names of all calls, which faults may be for. */
  methods: ReadonlySet<string>;
  /** Whether the request names a volume that is there. */
  isThere: (request: object) => boolean;
  /** Absent: no log. */
  callLogFile: string | undefined;
  clock: Clock;
  /** Aborts when the driver closes: delayed and hanging calls end then. */
  stop: AbortSignal;
}

/**
 * Makes a gRPC handler of a call's plain function, with injected faults, the call log, and errors as statuses:
 * a `CallError` as it is, anything else as INTERNAL, with its stack on standard error.
 */
export function serveCall<Request extends object, Response>(
  method: string,
  handler: (request: Request) => Promise<Response> | Response,
  options: ServeOptions,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    void serve(method, handler, options, call, callback);
  };
}

async function serve<Request extends object, Response>(
  method: string,
  handler: (request: Request) => Promise<Response> | Response,
  options: ServeOptions,
  call: ServerUnaryCall<Request, Response>,
  callback: sendUnaryData<Response>,
): Promise<void> {
  const { clock, faultsFile, methods, isThere } = options;
  const startMs = clock.monotonicMs();
  const time = new Date(clock.wallMs()).toISOString();
  let failure: CallError | undefined;
  try {
    const taken = takeFault(faultsFile, method, methods, call.request);
    const fault = taken?.unlessThere === true && isThere(call.request) ? undefined : taken;
    if (fault?.after !== true) await apply(fault, call, options);
    const response = await handler(call.request);
    if (fault?.after === true) await apply(fault, call, options);
    callback(null, fault?.capacityBytes === undefined ? response : ofSize(response, fault.capacityBytes));
  } catch (error) {
    failure = asCallError(method, error);
    callback({ code: failure.code, details: failure.message });
  }
  if (options.callLogFile === undefined) return;
  const record: CallRecord = {
    time,
    method,
    request: withoutSecretValues(call.request),
    code: failure?.codeName ?? 'OK',
    ...(failure === undefined ? {} : { message: failure.message }),
    ms: Math.round(clock.monotonicMs() - startMs),
    ...(call.cancelled ? { cancelled: true } : {}),
  };
  try {
    logCall(options.callLogFile, record);
  } catch (error) {
    console.error(`cannot write the call log: ${String(error)}`);
  }
}

/** The answer with another size of its volume. */
function ofSize<Response>(response: Response, bytes: number): Response {
  const { volume } = response as { volume?: object };
  return { ...response, volume: { ...volume, capacity_bytes: String(bytes) } };
}

async function apply(
  fault: Fault | undefined,
  call: ServerUnaryCall<unknown, unknown>,
  options: ServeOptions,
): Promise<void> {
  if (fault === undefined) return;
  const { stop, faultsFile, methods } = options;
  if (fault.delayMs !== undefined) await wait(fault.delayMs, options);
  if (fault.hold === true) while (isHeld(faultsFile, fault.method, methods)) await wait(holdPollMs, options);
  if (fault.hang === true) await untilGivenUp(call, stop);
  if (fault.code !== undefined) throw new CallError(fault.code, fault.message ?? `injected ${fault.code}`);
}

async function wait(ms: number, { clock, stop }: ServeOptions): Promise<void> {
  await clock.sleep(ms, { signal: stop }).catch((error: unknown) => {
    throw new CallError('UNAVAILABLE', 'the driver is closing', { cause: error });
  });
}

/** Rejects once the caller, or the driver, has given up. */
async function untilGivenUp(call: ServerUnaryCall<unknown, unknown>, stop: AbortSignal): Promise<never> {
  const given = Promise.withResolvers<undefined>();
  const giveUp = (): void => given.resolve(undefined);
  call.once('cancelled', giveUp);
  stop.addEventListener('abort', giveUp);
  try {
    if (!call.cancelled && !stop.aborted) await given.promise;
  } finally {
    stop.removeEventListener('abort', giveUp);
  }
  throw new CallError('CANCELLED', 'the caller gave up on a hanging call');
}

function asCallError(method: string, error: unknown): CallError {
  if (error instanceof CallError) return error;
  console.error(
    `${method} failed unexpectedly: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  );
  return new CallError('INTERNAL', error instanceof Error ? error.message : String(error), { cause: error });
}

/** One line of `calls.jsonl`. */
export interface CallRecord {
  /** RFC 3339, when the call came in. */
  time: string;
  method: string;
  /** The request; of secrets only the keys. */
  request: object;
  /** `OK` or the status' name. */
  code: string;
  /** Absent for `OK`. */
  message?: string;
  /** How long the call took, in milliseconds. */
  ms: number;
  /** Present when the caller gave up before the response. */
  cancelled?: true;
}

/** The request as it may be shown: the values of `secrets` never leave the process. */
export function withoutSecretValues(request: object): object {
  const { secrets, ...rest } = request as { secrets?: object };
  return secrets === undefined ? rest : { ...rest, secrets: Object.keys(secrets).sort() };
}

/** Appends one call to the log; the line is whole even when many calls end at once. */
function logCall(file: string, record: CallRecord): void {
  appendFileSync(file, JSON.stringify(record) + '\n');
}
