/** Stands between a sidecar and a driver: passes every call on, keeps what was said, and can hold an answer back. */
import { once } from 'node:events';
import {
  Server,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServiceError,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { CsiClient, csiMethods, decoded, identity, type CsiMethod, type Message } from './csi-wire.ts';

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
  open: Promise<undefined>;
}

type UnaryCall = ServerUnaryCall<Buffer, Buffer>;

export class CsiProxy implements AsyncDisposable {
  /** Answered calls, oldest first. */
  readonly calls: CsiCall[] = [];
  readonly #server = new Server();
  readonly #driver: CsiClient;
  readonly #gates: Gate[] = [];

  private constructor(driver: string) {
    this.#driver = new CsiClient(driver);
    const methods = csiMethods();
    for (const service of new Set(methods.map((method) => method.service)))
      this.#addService(methods.filter((method) => method.service === service));
  }

  /** @param listen - address of the proxy. @param driver - address of the driver; both `unix:///...`. */
  static async start(listen: string, driver: string): Promise<CsiProxy> {
    const proxy = new CsiProxy(driver);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.bindAsync(listen, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    return proxy;
  }

  /** Holds back the answer to the next call of a method. */
  hold(method: string): Held {
    const opened = Promise.withResolvers<undefined>();
    const reached = Promise.withResolvers<CsiCall>();
    this.#gates.push({ method, reached: reached.resolve, open: opened.promise });
    return { answered: reached.promise, release: () => opened.resolve(undefined) };
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- the interface of disposal
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
    this.#driver[Symbol.dispose]();
  }

  #addService(methods: readonly CsiMethod[]): void {
    const codec = {
      requestStream: false,
      responseStream: false,
      requestSerialize: identity,
      requestDeserialize: identity,
      responseSerialize: identity,
      responseDeserialize: identity,
    };
    const handlers: UntypedServiceImplementation = {};
    for (const method of methods)
      handlers[method.name] = (call: UnaryCall, answer: sendUnaryData<Buffer>) => void this.#pass(method, call, answer);
    this.#server.addService(Object.fromEntries(methods.map(({ name, path }) => [name, { path, ...codec }])), handlers);
  }

  async #pass(method: CsiMethod, call: UnaryCall, answer: sendUnaryData<Buffer>): Promise<void> {
    const forwarded = this.#driver.forward(method.path, call.request, call.metadata, call.getDeadline());
    call.once('cancelled', forwarded.cancel);
    const record = { method: method.name, request: decoded(method.request, call.request) };
    try {
      const bytes = await forwarded.answer;
      await this.#keep({ ...record, code: 'OK', text: '', response: decoded(method.response, bytes) }, call);
      answer(null, bytes);
    } catch (error) {
      const { code, details } = error as ServiceError;
      await this.#keep({ ...record, code: status[code], text: details }, call);
      answer(error as ServiceError);
    }
  }

  async #keep(record: CsiCall, call: UnaryCall): Promise<void> {
    this.calls.push(record);
    const index = this.#gates.findIndex((gate) => gate.method === record.method);
    const [gate] = index < 0 ? [] : this.#gates.splice(index, 1);
    if (gate === undefined) return;
    gate.reached(record);
    await Promise.race([gate.open, once(call, 'cancelled')]);
  }
}
