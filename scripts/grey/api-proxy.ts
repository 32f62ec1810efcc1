import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A request of a sidecar. */
export interface ProxiedRequest {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
}

/** What happens to a request: it passes, gets no response, or is refused with this code and reason. */
export type Decision = 'pass' | 'hold' | { code: number; reason: string };

/** An API server and the credentials for it. */
export interface ApiOrigin {
  url: string;
  /** PEM. */
  ca: string | undefined;
  token: string | undefined;
}

/**
 * A proxy in front of an API server for one sidecar. It speaks plain HTTP and adds the credentials, which clients do
 * not send without TLS.
 */
export class ApiProxy implements AsyncDisposable {
  readonly url: string;
  /** May be replaced at any time; it decides about the requests that come from then on. */
  decide: (request: ProxiedRequest) => Decision = () => 'pass';
  /** The number of requests that get no response. */
  held = 0;
  readonly #server: Server;
  readonly #origin: ApiOrigin;
  readonly #agent: Agent;
  /** Responses of open watches, and the paths of the requests. */
  readonly #watches = new Map<ServerResponse, string>();

  private constructor(server: Server, origin: ApiOrigin) {
    this.#server = server;
    this.#origin = origin;
    this.#agent = new Agent({ keepAlive: true, ca: origin.ca });
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(origin: ApiOrigin): Promise<ApiProxy> {
    const server = createServer({ keepAliveTimeout: 0 });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new ApiProxy(server, origin);
    server.on('request', (incoming: IncomingMessage, client: ServerResponse) => proxy.#handle(incoming, client));
    return proxy;
  }

  /** Paths of the watches that are open. */
  watched(): string[] {
    return [...this.#watches.values()];
  }

  /** Ends all open watches. */
  endWatches(): void {
    for (const client of this.#watches.keys()) client.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await closed;
  }

  #handle(incoming: IncomingMessage, client: ServerResponse): void {
    const { pathname: path, searchParams: query } = new URL(incoming.url ?? '', this.url);
    const decision = this.decide({ method: incoming.method ?? '', path, query });
    if (decision === 'pass') this.#forward(incoming, client, isWatch(query) ? path : undefined);
    else if (decision === 'hold') this.held++;
    else refuse(client, decision);
  }

  #forward(incoming: IncomingMessage, client: ServerResponse, watched: string | undefined): void {
    const { method, url: path, headers } = incoming;
    const { protocol, hostname, port } = new URL(this.#origin.url);
    const { token } = this.#origin;
    const withToken = token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
    const target = { hostname, port, method, path, headers: withToken };
    const outgoing =
      protocol === 'https:'
        ? httpsRequest({ ...target, agent: this.#agent })
        : httpRequest({ ...target, agent: false });
    outgoing.on('response', (response) => {
      client.writeHead(response.statusCode ?? 500, response.headers);
      client.flushHeaders();
      response.pipe(client);
      if (watched !== undefined && response.statusCode === 200) this.#watches.set(client, watched);
    });
    outgoing.on('error', () => client.destroy());
    client.on('close', () => {
      this.#watches.delete(client);
      outgoing.destroy();
    });
    incoming.pipe(outgoing);
  }
}

export function isWatch(query: URLSearchParams): boolean {
  return ['true', '1'].includes(query.get('watch') ?? '');
}

function refuse(client: ServerResponse, { code, reason }: { code: number; reason: string }): void {
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: `refused: ${reason}`, reason, code };
  client.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
