import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Transform } from 'node:stream';

/** One address in front of several servers on loopback, as a load balancer of TCP connections has it. */
export interface TcpBalancer extends AsyncDisposable {
  /** Where it listens, on 127.0.0.1. */
  readonly port: number;
  /** How many connections each server has got so far. */
  readonly accepted: readonly number[];
  /** Gives new connections to one server alone from now on, by its index; without one to all in turn, as at first. */
  use(index?: number): void;
  /**
   * The server behind the present connections dies without a word: they stay open and silent, and whatever is sent over them is
   * acknowledged and lost. Later ones work.
   */
  silenceConnections(): void;
  /** Closes all connections at once, whatever is under way; later ones are accepted as before. */
  closeConnections(): void;
}

/**
 * Starts a balancer that gives each new connection to the next server, whose ports these are.
 *
 * @param options.delayMs - how much later arrives what either side sends, in milliseconds. Default 0.
 */
export async function startBalancer(
  ports: readonly number[],
  { delayMs = 0 }: { delayMs?: number } = {},
): Promise<TcpBalancer> {
  const open = new Set<Socket>();
  const accepted = ports.map(() => 0);
  let serial = 0;
  let only: number | undefined;
  const listener = createServer((client) => {
    const index = only ?? serial++ % ports.length;
    accepted[index]! += 1;
    const server = connect(ports[index]!, '127.0.0.1');
    const pair = [client, server];
    for (const socket of pair) {
      open.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined); // `close` follows
      socket.on('close', () => {
        open.delete(socket);
        const end = (): void => pair.forEach((each) => each.destroy());
        if (delayMs === 0) end();
        else setTimeout(end, delayMs);
      });
    }
    if (delayMs === 0) client.pipe(server).pipe(client);
    else client.pipe(late(delayMs)).pipe(server).pipe(late(delayMs)).pipe(client);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const closeConnections = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (listener.address() as AddressInfo).port,
    accepted,
    use(index) {
      only = index;
    },
    silenceConnections() {
      for (const socket of open) socket.unpipe().resume();
    },
    closeConnections,
    async [Symbol.asyncDispose]() {
      const closed = once(listener, 'close');
      listener.close();
      closeConnections();
      await closed;
    },
  };
}

/** Timers of one duration fire in the order in which they were set, so bytes stay in order. */
function late(delayMs: number): Transform {
  return new Transform({
    transform(chunk, _encoding, done) {
      setTimeout(() => this.push(chunk), delayMs);
      done();
    },
    flush: (done) => void setTimeout(done, delayMs),
  });
}
