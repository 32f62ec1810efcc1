/** An HTTP proxy in front of an API server, for one process: it records the requests. */
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ProxiedRequest {
  method: string;
  /** Path and query. */
  url: string;
}

export class RecordingProxy implements AsyncDisposable {
  readonly requests: ProxiedRequest[] = [];
  readonly url: string;
  readonly #server: Server;
  readonly #origin: URL;

  private constructor(server: Server, origin: string) {
    this.#server = server;
    this.#origin = new URL(origin);
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** @param origin - of the API server. */
  static async start(origin: string): Promise<RecordingProxy> {
    const server = createServer({ keepAliveTimeout: 0 }); // a connection stays while its process is stopped
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const proxy = new RecordingProxy(server, origin);
    server.on('request', (incoming: IncomingMessage, answer: ServerResponse) => proxy.#forward(incoming, answer));
    return proxy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #forward(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method = '', url = '', headers } = incoming;
    this.requests.push({ method, url });
    const { hostname, port } = this.#origin;
    const outgoing = request({ hostname, port, method, path: url, headers, agent: false }, (response) => {
      answer.writeHead(response.statusCode ?? 500, response.headers);
      answer.flushHeaders();
      response.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }
}
