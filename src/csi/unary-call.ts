/** The one way to call a driver: deadline, cancellation, logging, metrics and typed errors for every method. */
import { inspect } from 'node:util';
import { DeadlineError } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import { SecretEncodingError, SecretString, strippedText } from '../base/secret-string.ts';
import { codeName, CsiCallError, errorMessage, grpcCodes, LostStatusError } from './call-error.ts';
import type { CallProgress } from './call-progress.ts';
import type { CsiConnection } from './connection.ts';
import type { Method, SecretFields } from './csi-proto.ts';
import type { FailedCall } from './grpc-session.ts';

/** One finished call, for metrics. */
export interface FinishedCall {
  /** Full method, such as `/csi.v1.Controller/CreateVolume`. */
  method: string;
  /** Go spelling; `OK` for success. */
  code: string;
  seconds: number;
  /** The call served a volume of an in-tree plugin. */
  migrated: boolean;
}

/** A call that begins. */
export interface StartedCall {
  /** Full method, such as `/csi.v1.Controller/CreateVolume`. */
  method: string;
  about: CallSubject | undefined;
}

/** What an observer gives for one call. */
export interface ObservedCall {
  /** Sent with the request, such as the trace that it belongs to; keys in lower case. */
  metadata?: Readonly<Record<string, string>>;
  /** Called once, whatever the end. `code` is Go's name of the gRPC code. */
  ended(code: string): void;
}

/** Follows calls from their beginning. Must return at once, and not throw. */
export type CallObserver = (call: StartedCall) => ObservedCall | undefined;

/** What all calls of a process share. */
export interface CallSettings {
  connection: CsiConnection;
  /** Fields that never reach a log, from `loadCsi()`. */
  secretFields: SecretFields;
  /** Milliseconds a call may take; 0 and less: every call fails at once with DeadlineExceeded. */
  timeoutMs: number;
  logger: Logger;
  clock: Clock;
  /** Called once per call, whatever its end. */
  onCall?: ((call: FinishedCall) => void) | undefined;
  /** Default none. */
  observers?: readonly CallObserver[] | undefined;
  /** Notified of calls that get a response, and of those that are given up. Default: none. */
  progress?: Pick<CallProgress, 'responded' | 'givenUp'> | undefined;
}

export interface CallOptions {
  /** Cancels the call: the driver sees its stream reset. */
  signal?: AbortSignal | undefined;
  /** Instead of the settings' own, in milliseconds. */
  timeoutMs?: number | undefined;
  migrated?: boolean | undefined;
  /** The call creates something, which it may do after it was given up. */
  creates?: boolean | undefined;
  /** Called after each wait for a connection, and before the call is sent again: what it throws ends the call, which was not sent. */
  recheck?: (() => void) | undefined;
  /** What the call is for, in its log line. */
  about?: CallSubject | undefined;
}

/** A claim as `namespace/name`, a PersistentVolume by name, or a capacity by class and segment. */
export type CallSubject = { claim: string } | { volume: string } | { capacity: string };

/** A request in which secrets are still wrapped: they are revealed only while it is encoded. */
export type WithWrappedSecrets<T> = Omit<T, 'secrets'> &
  ('secrets' extends keyof T ? { secrets?: Record<string, SecretString> } : unknown);

/** A response this short before our deadline was for the same deadline, at the driver's side, in milliseconds. */
const deadlineSlackMs = 250;

/**
 * Makes one call and waits for its response.
 *
 * @throws {CsiCallError} for every failure of the call, its text without the values of the request's secrets; an error of
 * another kind, such as that of a closed channel, reveals nothing about the driver. Ours read `context deadline exceeded`,
 * `context canceled` and, for a secret that is not UTF-8, `grpc: error while marshaling: ...`. What failed before the request
 * was sent says so in `sent`.
 */
export async function unaryCall<Request extends object, RequestOutput, Response, ResponseOutput extends object>(
  settings: CallSettings,
  method: Method<Request, Response, RequestOutput, ResponseOutput>,
  request: WithWrappedSecrets<Request>,
  options: CallOptions = {},
): Promise<ResponseOutput> {
  const { logger, clock, secretFields } = settings;
  const start = clock.monotonicMs();
  const started = { method: method.path, about: options.about };
  const observed = (settings.observers ?? []).map((observe) => observe(started));
  const finished = (code: number): void => {
    const durationMs = clock.monotonicMs() - start;
    // the error of a failed call is logged once, by the caller that handles it
    logger.debug(
      { method: method.path, code: codeName(code), durationMs: Math.round(durationMs), ...options.about },
      'CSI call finished',
    );
    settings.onCall?.({
      method: method.path,
      code: codeName(code),
      seconds: durationMs / 1000,
      migrated: options.migrated ?? false,
    });
    for (const each of observed) each?.ended(codeName(code));
  };
  const requestSecrets = secretFields.get(method.request.name);
  logger.trace({ method: method.path, request: new LoggedMessage(request, requestSecrets) }, 'GRPC call');
  try {
    const response = await send(settings, method, request, { ...options, metadata: metadataOf(observed) });
    const responseSecrets = secretFields.get(method.response.name);
    logger.trace({ method: method.path, response: new LoggedMessage(response, responseSecrets) }, 'GRPC response');
    finished(grpcCodes.OK);
    return response;
  } catch (error) {
    const code = error instanceof CsiCallError ? error.code : grpcCodes.Unknown;
    logger.trace({ method: method.path, code: codeName(code), err: errorMessage(error) }, 'GRPC response');
    finished(code);
    throw error;
  }
}

async function send<Request extends object, RequestOutput, Response, ResponseOutput extends object>(
  { connection, clock, progress, timeoutMs: defaultTimeoutMs }: CallSettings,
  method: Method<Request, Response, RequestOutput, ResponseOutput>,
  request: WithWrappedSecrets<Request>,
  {
    signal,
    timeoutMs = defaultTimeoutMs,
    creates = false,
    metadata,
  }: CallOptions & { metadata: Record<string, string> },
): Promise<ResponseOutput> {
  throwIfAborted(signal, { sent: false });
  if (timeoutMs <= 0) throw deadlineExceeded({ sent: false });
  const message = encode(method, request);
  const start = clock.monotonicMs();
  let hasResponse = false as boolean;
  const onResponse = (): void => {
    hasResponse = true;
    progress?.responded(start);
  };
  const end = await connection.call({ path: method.path, message, metadata, timeoutMs, signal, onResponse });
  if (end.message !== undefined) return decode(method, end.message);
  const { cause, sent = true } = end;
  const givenUp = (): void => {
    if (creates && !hasResponse) progress?.givenUp();
  };
  if (signal?.aborted === true) givenUp();
  throwIfAborted(signal, { cause, sent });
  const atDeadline = clock.monotonicMs() - start >= timeoutMs - deadlineSlackMs;
  const isDeadline = end.code === grpcCodes.DeadlineExceeded;
  if (isDeadline) givenUp();
  else if (sent && !hasResponse) connection.callBroke();
  // the text is that of a driver built on grpc-js, whose timer for our deadline may fire first
  if (isDeadline && atDeadline && end.details === 'Deadline exceeded') throw deadlineExceeded({ cause });
  throw callError(end, (request as { secrets?: Record<string, SecretString> }).secrets);
}

function metadataOf(observed: readonly (ObservedCall | undefined)[]): Record<string, string> {
  return Object.assign({}, ...observed.map((each) => each?.metadata)) as Record<string, string>;
}

/** Encoded before a call is made, so that a bad secret fails before anything leaves the process. */
function encode<Request extends object, RequestOutput, Response, ResponseOutput>(
  method: Method<Request, Response, RequestOutput, ResponseOutput>,
  request: WithWrappedSecrets<Request>,
): Buffer {
  try {
    const { secrets, ...rest } = request as { secrets?: Record<string, SecretString> };
    if (secrets === undefined) return method.request.encode(request as unknown as Request);
    const revealed = Object.entries(secrets).map(([key, value]) => [key, value.reveal()] as const);
    return method.request.encode({ ...rest, secrets: Object.fromEntries(revealed) } as unknown as Request);
  } catch (error) {
    const why = error instanceof SecretEncodingError ? error.message : 'the request does not fit its message';
    throw new CsiCallError(grpcCodes.Internal, `grpc: error while marshaling: ${why}`, { sent: false });
  }
}

function decode<Request, RequestOutput, Response, ResponseOutput>(
  method: Method<Request, Response, RequestOutput, ResponseOutput>,
  message: Buffer,
): ResponseOutput {
  try {
    return method.response.decode(message);
  } catch (error) {
    const text = `grpc: failed to unmarshal the received message: ${errorMessage(error)}`;
    throw new CsiCallError(grpcCodes.Internal, text, { cause: error });
  }
}

function throwIfAborted(signal: AbortSignal | undefined, options: { cause?: unknown; sent?: boolean }): void {
  if (signal?.aborted !== true) return;
  if (signal.reason instanceof DeadlineError) throw deadlineExceeded(options);
  throw new CsiCallError(grpcCodes.Canceled, 'context canceled', options);
}

/** The failure of a call whose deadline has passed. */
function deadlineExceeded(options: { cause?: unknown; sent?: boolean }): CsiCallError {
  return new CsiCallError(grpcCodes.DeadlineExceeded, 'context deadline exceeded', options);
}

/** A driver may quote its request, and its text becomes an event and reaches logs, traces and the journal. */
function callError(
  { code, details, sent = true, isLost = false, cause }: FailedCall,
  secrets: Record<string, SecretString> = {},
): CsiCallError {
  const text = SecretString.stripped(details, Object.values(secrets));
  const options = { sent, ...(cause !== undefined && { cause }) };
  return isLost ? new LostStatusError(code, text, options) : new CsiCallError(code, text, options);
}

/**
 * A CSI message as a log field: prints without its secret fields, in JSON and in `util.inspect`. The copy without them
 * is made when it is printed, so a message whose level is off costs nothing (CSI spec, "Secrets Requirements").
 */
export class LoggedMessage {
  readonly #message: object;
  readonly #secretFields: ReadonlySet<string> | undefined;

  /** @param secretFields - names of the fields marked `csi_secret`; undefined when the message has none. */
  constructor(message: object, secretFields: ReadonlySet<string> | undefined) {
    this.#message = message;
    this.#secretFields = secretFields;
  }

  toJSON(): object {
    const secret = this.#secretFields;
    if (secret === undefined) return this.#message;
    return Object.fromEntries(
      Object.entries(this.#message).map(([key, value]) => [key, secret.has(key) ? strippedText : (value as unknown)]),
    );
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}
