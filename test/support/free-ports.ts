import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below the ports that Linux gives to connections and to servers that ask for any port (`ip_local_port_range`). */
const [first, end] = [10_000, 32_000];

/** Free loopback ports, all different. The kernel gives them to nobody by itself before they are used. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>();
  while (servers.size < count) {
    const port = first + Math.floor(Math.random() * (end - first));
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false, // somebody has it
    );
    if (isFree) servers.set(port, server);
  }
  await Promise.all([...servers.values()].map((server) => once(server.close(), 'close')));
  return [...servers.keys()];
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
