import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';

/** The socket's path cannot be used; the message says why. */
class SocketPathError extends Error {
  override readonly name = 'SocketPathError';
}

/**
 * Makes way for a socket: makes its folder and removes what a process that is gone left behind.
 *
 * @throws {SocketPathError} when somebody listens there, or something else than a socket is in the way.
 */
export async function clearSocketPath(socketPath: string): Promise<void> {
  mkdirSync(path.dirname(socketPath), { recursive: true });
  const found = lstatSync(socketPath, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new SocketPathError(`${socketPath} exists and is not a socket`);
  if (await responds(socketPath)) throw new SocketPathError(`another process listens on ${socketPath}`);
  rmSync(socketPath, { force: true });
}

async function responds(socketPath: string): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const socket = connect(socketPath, () => resolve(true));
  socket.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false);
    else reject(new SocketPathError(`${socketPath}: ${error.message}`, { cause: error }));
  });
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}
