import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';

/** An HTTP proxy on loopback that opens tunnels, and refuses all else. */
export interface ConnectProxy extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`, or `https`. */
  readonly url: string;
  /** Where each tunnel leads to, such as `127.0.0.1:6443`, oldest first. */
  readonly tunnels: readonly string[];
  /** Responds with this code to requests for a tunnel; without one, opens tunnels again. */
  refuse(code?: number): void;
  closeTunnels(): void;
}

/** @param tls - certificate to speak TLS with; without one it speaks plain HTTP. */
export async function startConnectProxy(tls?: { cert: string; key: string }): Promise<ConnectProxy> {
  const tunnels: string[] = [];
  const open = new Set<Socket>();
  let refusal: number | undefined;
  const server = tls === undefined ? createServer() : createTlsServer(tls);
  server.on('request', (_request, response) => void response.writeHead(405).end());
  server.on('connect', (request, client: Socket) => {
    if (refusal !== undefined) {
      client.end(`HTTP/1.1 ${refusal} Refused\r\n\r\n`);
      return;
    }
    const target = request.url ?? '';
    tunnels.push(target);
    const [host = '', port = ''] = target.split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    const pair = [client, upstream];
    for (const socket of pair) {
      open.add(socket);
      socket.on('error', () => undefined); // `close` follows
      socket.on('close', () => {
        open.delete(socket);
        for (const each of pair) each.destroy();
      });
    }
  });
  const closeTunnels = (): void => {
    for (const socket of open) socket.destroy();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tunnels,
    refuse(code) {
      refusal = code;
    },
    closeTunnels,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      closeTunnels();
      await closed;
    },
  };
}
