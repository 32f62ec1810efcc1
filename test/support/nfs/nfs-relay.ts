/** A way to the NFS server on which a write can be held back, to be done after something else has happened. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';

/** Relays from a port of the loopback interface to another until a client sends the text; from there on it waits for `release`. */
export class NfsRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #text: string;
  readonly #held = Promise.withResolvers<undefined>();
  readonly #released = Promise.withResolvers<undefined>();
  readonly #sockets = new Set<Socket>();

  private constructor(to: number, text: string) {
    this.#text = text;
    this.#server = createServer((client) => {
      const upstream = connect(to, '127.0.0.1');
      for (const socket of [client, upstream]) this.#sockets.add(socket);
      const ways = [
        pipeline(client, (chunks: AsyncIterable<Buffer>) => this.#hold(chunks), upstream),
        pipeline(upstream, client),
      ];
      for (const way of ways) way.catch(() => undefined); // either side may go at any time
    });
  }

  static async start(to: number, text: string): Promise<NfsRelay> {
    const relay = new NfsRelay(to, text);
    relay.#server.listen(0, '127.0.0.1');
    await once(relay.#server, 'listening');
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves once a client has sent the text. */
  held(): Promise<undefined> {
    return this.#held.promise;
  }

  /** Lets the text through, and all that follows. */
  release(): void {
    this.#released.resolve(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }

  async *#hold(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      if (chunk.includes(this.#text)) {
        this.#held.resolve(undefined);
        await this.#released.promise;
      }
      yield chunk;
    }
  }
}
