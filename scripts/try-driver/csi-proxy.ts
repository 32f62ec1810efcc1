/** What is said between a sidecar and a driver, and calls of our own to the driver. */
import { Client, credentials, type MethodDefinition, status, type ServiceError } from '@grpc/grpc-js';
import { csiServices } from '../../sandbox/csi-services.ts';
import { CallProxy, type ObservedCall } from '../../sandbox/proxy/call-proxy.ts';

export type Message = Record<string, unknown>;

/** One call that the sidecar has made. */
export interface CsiCall {
  method: string;
  request: Message;
  /** Such as `OK` or `RESOURCE_EXHAUSTED`. */
  code: string;
  /** Text of the error; empty for OK. */
  text: string;
  response?: Message;
}

/** An answer that is held back. */
export interface Held {
  /** The driver has done its work; the sidecar knows nothing of it yet. */
  answered: Promise<CsiCall>;
  release: () => void;
}

interface Gate {
  method: string;
  reached: (call: CsiCall) => void;
  until: Promise<unknown>;
  /** Whether its call has come. */
  taken: boolean;
}

type Method = MethodDefinition<Message, Message>;

const services = Object.values(csiServices()) as Record<string, Method>[];
const methods = new Map(services.flatMap((service) => Object.values(service)).map((method) => [method.path, method]));

/** Such as `CreateVolume`. */
function nameOf(path: string): string {
  return path.split('/').at(-1) ?? '';
}

/** Stands between a sidecar and a driver: keeps what was said, and can hold an answer back. */
export class CsiProxy implements AsyncDisposable {
  /** Answered calls, oldest first. */
  readonly calls: CsiCall[] = [];
  readonly #gates: Gate[] = [];
  #proxy: CallProxy | undefined;

  /** @param socketPath - of the proxy. */
  static async start(socketPath: string, driverSocket: string): Promise<CsiProxy> {
    const csi = new CsiProxy();
    csi.#proxy = await CallProxy.start({
      socketPath,
      driverSocket,
      report: () => undefined,
      faults: { take: (method) => csi.#take(method) },
      observe: (call) => csi.#keep(call),
    });
    return csi;
  }

  /** Holds back the answer to the next call of a method. */
  hold(method: string): Held {
    const opened = Promise.withResolvers<undefined>();
    const reached = Promise.withResolvers<CsiCall>();
    this.#gates.push({ method, reached: reached.resolve, until: opened.promise, taken: false });
    return { answered: reached.promise, release: () => opened.resolve(undefined) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#proxy?.[Symbol.asyncDispose]();
  }

  #take(method: string): { kind: 'hold'; until: Promise<unknown> } | undefined {
    const gate = this.#gates.find((each) => each.method === method && !each.taken);
    if (gate === undefined) return undefined;
    gate.taken = true;
    return { kind: 'hold', until: gate.until };
  }

  #keep({ path, request, code, text, response }: ObservedCall): void {
    const method = methods.get(path);
    if (method === undefined) return;
    const call: CsiCall = {
      method: nameOf(path),
      request: request === undefined ? {} : method.requestDeserialize(request),
      code: status[code] ?? String(code),
      text: decodeURIComponent(text),
      ...(code === 0 && response !== undefined && { response: method.responseDeserialize(response) }),
    };
    this.calls.push(call);
    const index = this.#gates.findIndex((gate) => gate.method === call.method && gate.taken);
    if (index >= 0) this.#gates.splice(index, 1)[0]?.reached(call);
  }
}

/** Calls a driver directly, past the proxy. */
export class CsiClient implements Disposable {
  readonly #client: Client;

  constructor(socketPath: string) {
    this.#client = new Client(`unix://${socketPath}`, credentials.createInsecure());
  }

  /** @throws a `ServiceError`, also after 10 s. */
  call(name: string, request: Message = {}): Promise<Message> {
    const { path, requestSerialize, responseDeserialize } = [...methods.values()].find(
      (method) => nameOf(method.path) === name,
    )!;
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    const done = (error: ServiceError | null, response: Message = {}): void =>
      error === null ? resolve(response) : reject(error);
    const deadline = Date.now() + 10_000;
    this.#client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, { deadline }, done);
    return promise;
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
