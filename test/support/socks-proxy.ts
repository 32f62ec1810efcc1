import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A SOCKS5 proxy on loopback (RFC 1928), which may want a user name and a password (RFC 1929). */
export interface SocksProxy extends AsyncDisposable {
  /** `127.0.0.1:<port>`. */
  readonly host: string;
  /** Ports of the servers that tunnels were made to, oldest first. */
  readonly tunnels: readonly number[];
}

/** @param login - what clients have to send, as `name:password`. */
export async function startSocksProxy(login?: string): Promise<SocksProxy> {
  const tunnels: number[] = [];
  const open = new Set<Socket>();
  const serve = async (client: Socket): Promise<void> => {
    const read = reader(client);
    const [, methods = 0] = await read(2);
    await read(methods);
    client.write(Buffer.from([5, login === undefined ? 0 : 2]));
    if (login !== undefined) {
      const name = String(await read((await read(2))[1] ?? 0));
      const password = String(await read((await read(1))[0] ?? 0));
      const isRight = `${name}:${password}` === login;
      client.write(Buffer.from([1, isRight ? 0 : 1]));
      if (!isRight) return;
    }
    await read(8); // an IPv4 address: the tests name no other
    const port = (await read(2)).readUInt16BE();
    tunnels.push(port);
    const upstream = connect(port, '127.0.0.1', () => {
      client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined); // `close` follows
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
  };
  const server = createServer((client) => {
    open.add(client);
    client.on('error', () => undefined);
    serve(client).catch(() => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    tunnels,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** Reads so many bytes; rejects when the connection ends before. */
function reader(socket: Socket): (bytes: number) => Promise<Buffer> {
  return async (bytes) => {
    if (bytes === 0) return Buffer.alloc(0);
    for (;;) {
      const chunk = socket.read(bytes) as Buffer | null;
      if (chunk !== null) return chunk;
      if (socket.readableEnded || socket.destroyed) throw new Error('the client has gone');
      await Promise.race([once(socket, 'readable'), once(socket, 'end'), once(socket, 'close')]);
    }
  };
}
