import path from 'node:path';

/** The kernel's limit for the path of a unix socket, less its closing zero byte. */
const maxPathBytes = 107;

/**
 * The absolute path of a CSI address: `unix:///path`, `unix:path` or a plain path.
 *
 * @throws with one line that names the flag.
 */
export function socketPathOf(address: string): string {
  if (/^(dns|tcp|https?|ipv[46]):/.test(address)) {
    throw new Error(`--csi-address: ${address} is no unix socket: give its path, or unix:///path`);
  }
  const socketPath = path.resolve(address.replace(/^unix:(\/\/)?/, ''));
  if (Buffer.byteLength(socketPath) <= maxPathBytes) return socketPath;
  throw new Error(
    `--csi-address: ${socketPath} is longer than the ${maxPathBytes} bytes a unix socket's path may have`,
  );
}
