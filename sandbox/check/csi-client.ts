import { type ClientUnaryCall, credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js';
import { csiServices } from '../csi-services.ts';
import type { CodeName } from '../hostpath/call-error.ts';
import { throwIfGivenUp } from './check-signal.ts';
import type { Method, Responses } from './csi-messages.ts';

/** How a call ended. */
export type Answer<Response> =
  | { readonly ok: true; readonly method: Method; readonly response: Response }
  | {
      readonly ok: false;
      readonly method: Method;
      readonly code: CodeName;
      readonly message: string;
      /** Whether the status carried `details`, which CSI does not allow. */
      readonly detailed: boolean;
      /** Nothing has come within the time limit of a call. */
      readonly stalled: boolean;
    };

export interface CsiClientOptions {
  readonly socketPath: string;
  /** How long a call may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Gets each answer, before the caller does. */
  readonly observe?: (answer: Answer<unknown>) => void;
}

type Unary = (
  request: object,
  options: object,
  done: (error: ServiceError | null, response?: object) => void,
) => ClientUnaryCall;

type GrpcClient = Record<string, Unary> & { close(): void };

/**
 * DEADLINE_EXCEEDED that comes so shortly before the time limit still counts as its effect, in milliseconds: a timer may fire a
 * fraction of a millisecond early, and a driver that honours the deadline of the call ends the call by its own clock.
 */
const toleranceMs = 50;

/** A driver that starts again is called again soon. */
const channelOptions = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1000 };

/** Calls a driver. No call takes longer than its time limit, and none throws for what the driver does, but for a check that was given up. */
export class CsiClient implements Disposable {
  readonly #options: CsiClientOptions;
  readonly #clients: Record<string, GrpcClient> = {};

  constructor(options: CsiClientOptions) {
    this.#options = options;
    for (const [name, definition] of Object.entries(csiServices())) {
      if (!/^csi\.v1\.(Identity|Controller|Node)$/.test(name)) continue;
      const client = new (makeClientConstructor(definition, name))(
        `unix:${options.socketPath}`,
        credentials.createInsecure(),
        channelOptions,
      ) as unknown as GrpcClient;
      for (const method of Object.keys(definition)) this.#clients[method] = client;
    }
  }

  async call<M extends Method>(method: M, request: object = {}): Promise<Answer<Responses[M]>> {
    throwIfGivenUp();
    const answer = await this.#send(method, request);
    this.#options.observe?.(answer);
    return answer;
  }

  [Symbol.dispose](): void {
    for (const client of new Set(Object.values(this.#clients))) client.close();
  }

  #send<M extends Method>(method: M, request: object): Promise<Answer<Responses[M]>> {
    const { promise, resolve } = Promise.withResolvers<Answer<Responses[M]>>();
    const { timeoutMs } = this.#options;
    const client = this.#clients[method];
    if (client === undefined) throw new Error(`csi.proto has no call ${method}`);
    const startedAt = performance.now();
    client[method]?.call(client, request, { deadline: Date.now() + timeoutMs }, (error, response) => {
      if (error === null) resolve({ ok: true, method, response: response as Responses[M] });
      else resolve(failed(method, error, performance.now() - startedAt >= timeoutMs - toleranceMs));
    });
    return promise;
  }
}

function failed<M extends Method>(method: M, error: ServiceError, late: boolean): Answer<Responses[M]> {
  return {
    ok: false,
    method,
    code: status[error.code] as CodeName,
    message: error.details,
    detailed: error.metadata.get('grpc-status-details-bin').length > 0,
    stalled: late && error.code === status.DEADLINE_EXCEEDED,
  };
}

/** A failed answer in words: `DeleteVolume: NOT_FOUND: there is no such volume`. */
export function described(answer: Answer<unknown>, timeoutMs?: number): string {
  if (answer.ok) return `${answer.method}: OK`;
  if (answer.stalled) {
    const limit = timeoutMs === undefined ? 'its time limit' : `${timeoutMs / 1000} s (--timeout)`;
    return `${answer.method} did not respond within ${limit}`;
  }
  return `${answer.method}: ${answer.code}: ${answer.message}`;
}
