import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/**
 * Free loopback ports, all different. Another process may take one before it is used: the kernel hands out
 * ephemeral ports in turn, so that is rare.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
