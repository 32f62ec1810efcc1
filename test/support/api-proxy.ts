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
import { text } from 'node:stream/consumers';

/** A request of a sidecar. */
export interface ProxiedRequest {
  method: string;
  /** Path and query. */
  url: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
}

/** What happens to a request: it passes, gets no response, is refused with this code and reason, or is changed on the way. */
export type Decision = 'pass' | 'hold' | { code: number; reason: string } | Change;

export interface Change {
  /** Gets the body of the request, and returns what is sent in its place. */
  request?: (body: string) => string;
  /** The same for the response, whose code this is from now on. */
  response?: { code: number; body: (body: string) => string };
}

/** An API server and the credentials for it. */
export interface ApiOrigin {
  url: string;
  /** PEM. */
  ca?: string | undefined;
  token?: string | undefined;
}

/**
 * A proxy in front of an API server for one sidecar. It speaks plain HTTP and adds the credentials, which clients do
 * not send without TLS.
 */
export class ApiProxy implements AsyncDisposable {
  readonly url: string;
  /** What has come so far, oldest first. */
  readonly requests: ProxiedRequest[] = [];
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
    const server = createServer({ keepAliveTimeout: 0 }); // a connection stays while its process is stopped
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
    const { method = '', url = '' } = incoming;
    const { pathname: path, searchParams: query } = new URL(url, this.url);
    const request = { method, url, path, query };
    this.requests.push(request);
    const decision = this.decide(request);
    if (decision === 'hold') this.held++;
    else if (decision === 'pass') this.#forward(incoming, client, {}, isWatch(query) ? path : undefined);
    else if ('code' in decision) refuse(client, decision);
    else this.#forward(incoming, client, decision);
  }

  #forward(incoming: IncomingMessage, client: ServerResponse, change: Change, watched?: string): void {
    const { method, url: path } = incoming;
    const { protocol, hostname, port } = new URL(this.#origin.url);
    const target = { hostname, port, method, path, headers: this.#headers(incoming, change) };
    const outgoing =
      protocol === 'https:'
        ? httpsRequest({ ...target, agent: this.#agent })
        : httpRequest({ ...target, agent: false });
    outgoing.on('response', (response) => {
      if (change.response !== undefined) {
        void changed(response, change.response, client);
        return;
      }
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
    const { request } = change;
    if (request === undefined) incoming.pipe(outgoing);
    else void text(incoming).then((body) => outgoing.end(request(body)));
  }

  #headers({ headers }: IncomingMessage, { request, response }: Change): IncomingMessage['headers'] {
    const { token } = this.#origin;
    const { 'content-length': length, ...others } = headers;
    return {
      ...others,
      ...(request === undefined && length !== undefined && { 'content-length': length }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(response !== undefined && { 'accept-encoding': 'identity' }),
    };
  }
}

export function isWatch(query: URLSearchParams): boolean {
  return ['true', '1'].includes(query.get('watch') ?? '');
}

function refuse(client: ServerResponse, { code, reason }: { code: number; reason: string }): void {
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: `refused: ${reason}`, reason, code };
  client.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function changed(
  response: IncomingMessage,
  { code, body }: NonNullable<Change['response']>,
  client: ServerResponse,
): Promise<void> {
  const sent = body(await text(response));
  client.writeHead(code, { 'content-type': response.headers['content-type'] ?? 'application/json' }).end(sent);
}
