/** An HTTP proxy in front of an API server, for one process: it records the requests and can hold their answers back. */
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ProxiedRequest {
  method: string;
  /** Path and query. */
  url: string;
}

interface Hold {
  matches: (request: ProxiedRequest) => boolean;
  held: PromiseWithResolvers<undefined>;
  released: Promise<unknown>;
}

/** An answer that is held back. */
export interface HeldAnswer {
  /** Resolves once the API server has given it. */
  held: Promise<undefined>;
  release(): void;
}

export class RecordingProxy implements AsyncDisposable {
  readonly requests: ProxiedRequest[] = [];
  readonly url: string;
  readonly #server: Server;
  readonly #origin: URL;
  readonly #holds: Hold[] = [];

  private constructor(server: Server, origin: string) {
    this.#server = server;
    this.#origin = new URL(origin);
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** @param origin - of the API server. */
  static async start(origin: string): Promise<RecordingProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const proxy = new RecordingProxy(server, origin);
    server.on('request', (incoming: IncomingMessage, answer: ServerResponse) => proxy.#forward(incoming, answer));
    return proxy;
  }

  /** Holds the answer to the next request that matches. */
  hold(matches: Hold['matches']): HeldAnswer {
    const held = Promise.withResolvers<undefined>();
    const { promise: released, resolve } = Promise.withResolvers<undefined>();
    this.#holds.push({ matches, held, released });
    return { held: held.promise, release: () => resolve(undefined) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #forward(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method = '', url = '', headers } = incoming;
    const recorded = { method, url };
    this.requests.push(recorded);
    const at = this.#holds.findIndex(({ matches }) => matches(recorded));
    const [hold] = at === -1 ? [] : this.#holds.splice(at, 1);
    const { hostname, port } = this.#origin;
    const outgoing = request({ hostname, port, method, path: url, headers, agent: false }, (response) => {
      hold?.held.resolve(undefined);
      void (hold?.released ?? Promise.resolve()).then(() => {
        answer.writeHead(response.statusCode ?? 500, response.headers);
        answer.flushHeaders();
        response.pipe(answer);
      });
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }
}
