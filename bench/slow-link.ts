/** A TCP connection to a server that is far away: what either side sends arrives later by a fixed time. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { readFile, writeFile } from 'node:fs/promises';

export class SlowLink implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Listens on a free port of 127.0.0.1.
   *
   * @param delayMs - of each way, in milliseconds.
   */
  static async start({ host, port, delayMs }: { host: string; port: number; delayMs: number }): Promise<SlowLink> {
    const server = createServer();
    const link = new SlowLink(server);
    server.on('connection', (near) => {
      const far = connect(port, host);
      link.#forward(near, far, delayMs);
      link.#forward(far, near, delayMs);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Timers of one duration fire in the order in which they were set, so bytes stay in order. */
  #forward(from: Socket, to: Socket, delayMs: number): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (chunk) => void setTimeout(() => to.write(chunk), delayMs));
    from.on('end', () => void setTimeout(() => to.end(), delayMs));
    from.on('error', () => undefined); // `close` follows
    from.on('close', () => {
      this.#sockets.delete(from);
      setTimeout(() => to.destroy(), delayMs);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

/**
 * Copies a kubeconfig for a client that reaches its API server over a slow link.
 *
 * @param kubeconfig - its server has an address and a port, and with https a certificate that is valid for 127.0.0.1.
 * @param delayMs - of each way, in milliseconds.
 * @throws {Error} when it names no such server.
 */
export async function slowed(
  kubeconfig: string,
  { copy, delayMs }: { copy: string; delayMs: number },
): Promise<SlowLink> {
  const text = await readFile(kubeconfig, 'utf8');
  const [url = '', scheme = '', host = '', port] = /(https?):\/\/([\w.-]+):(\d+)/.exec(text) ?? [];
  if (port === undefined) throw new Error(`${kubeconfig}: it names no server as https://HOST:PORT or http://HOST:PORT`);
  const link = await SlowLink.start({ host, port: Number(port), delayMs });
  await writeFile(copy, text.replaceAll(url, `${scheme}://127.0.0.1:${link.port}`), { mode: 0o600 });
  return link;
}
