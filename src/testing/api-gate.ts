/**
 * The way of a provisioner to the API: every request passes, but for the one that a test waits for. That is held until the process that
 * has sent it is killed, so that it dies at exactly this step, or until its connection is closed.
 */
import {
  Agent,
  createServer,
  type IncomingMessage,
  request as sendRequest,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent as TlsAgent, request as sendOverTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A request of the provisioner that changes something. */
export interface ApiWrite {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The JSON of its body; undefined where there is none. */
  readonly body: unknown;
}

/** Where a request is held. */
export interface Stop {
  /** Asked in the order in which requests arrive. */
  matches(write: ApiWrite): boolean;
  /** `request`: the API server does not get it. `response`: it is carried out, and its sender does not get the response. */
  holds: 'request' | 'response';
}

/** Made by `ApiGate.hold`. */
export interface HeldRequest {
  /** Resolves when a request is held. */
  readonly reached: Promise<void>;
  /** Further requests pass; the held one stays held. */
  release(): void;
  /** Closes the connection of the held one. */
  close(): void;
}

/** What the API server is shown, as programs send no token to the gate, which is plain HTTP. */
export interface GateCredentials {
  /** PEM text of the authority that has signed the server's certificate. */
  readonly ca: string;
  readonly token: string;
}

export class ApiGate implements AsyncDisposable {
  readonly #upstream: URL;
  readonly #credentials: GateCredentials | undefined;
  readonly #agent: Agent;
  readonly #server: Server;
  readonly #stops = new Map<Stop, (held: ServerResponse) => void>();

  private constructor(upstream: string, credentials: GateCredentials | undefined) {
    this.#upstream = new URL(upstream);
    this.#credentials = credentials;
    this.#agent = credentials ? new TlsAgent({ keepAlive: true, ca: credentials.ca }) : new Agent({ keepAlive: true });
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
      void this.#pass(request, response).catch(() => response.destroy());
    });
  }

  /**
   * @param upstream - URL of the API server.
   * @param credentials - for each request to it, over TLS. Default: none, over plain HTTP.
   */
  static async start(upstream: string, credentials?: GateCredentials): Promise<ApiGate> {
    const gate = new ApiGate(upstream, credentials);
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    gate.#server.once('error', reject).listen(0, '127.0.0.1', () => resolve(undefined));
    await promise;
    return gate;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Holds the next request that matches. */
  hold(stop: Stop): HeldRequest {
    const reached = Promise.withResolvers<undefined>();
    let held: ServerResponse | undefined;
    this.#stops.set(stop, (response) => {
      held = response;
      reached.resolve(undefined);
    });
    return { reached: reached.promise, release: () => this.#stops.delete(stop), close: () => held?.destroy() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await closed;
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const body = method === 'GET' ? undefined : await buffer(request);
    const write = body && { method, path: url.replace(/\?.*/, ''), body: parsed(body) };
    const asked = write && this.#stopOf(write, 'request');
    if (asked !== undefined) {
      this.#reached(asked, response);
      return;
    }
    const answer = await this.#forward(request, response, body);
    const answered = write && isSuccess(answer) ? this.#stopOf(write, 'response') : undefined;
    if (answered !== undefined) {
      await buffer(answer);
      this.#reached(answered, response);
      return;
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    response.flushHeaders(); // a watch may have nothing to say for long
    answer.pipe(response).on('error', () => answer.destroy());
    answer.on('error', () => response.destroy());
  }

  #stopOf(write: ApiWrite, holds: Stop['holds']): Stop | undefined {
    return [...this.#stops.keys()].find((stop) => stop.holds === holds && stop.matches(write));
  }

  #reached(stop: Stop, held: ServerResponse): void {
    const notify = this.#stops.get(stop);
    this.#stops.delete(stop);
    notify?.(held);
  }

  async #forward(
    { method, url, headers: sentHeaders }: IncomingMessage,
    response: ServerResponse,
    body: Buffer | undefined,
  ): Promise<IncomingMessage> {
    const { hostname, port } = this.#upstream;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = {
      ...sentHeaders,
      ...(this.#credentials && { authorization: `Bearer ${this.#credentials.token}` }),
    };
    const send = this.#credentials ? sendOverTls : sendRequest;
    const sent = send({ hostname, port, method, path: url, headers, agent: this.#agent }, resolve);
    sent.on('error', reject);
    response.once('close', () => sent.destroy()); // the end of a watch
    sent.end(body);
    return await promise;
  }
}

function isSuccess({ statusCode = 500 }: IncomingMessage): boolean {
  return statusCode < 300;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
