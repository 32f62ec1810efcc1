import { stat } from 'node:fs/promises';
import { connect } from 'node:net';

/** The advice in every text: driver and sidecar are two containers that share the socket's directory. */
const samePath = 'is --csi-address the path of its socket as this container sees it?';

/**
 * Why nothing responds on a socket, as a log text: from the file's type and one connection, which is closed again.
 * Never rejects.
 */
export async function connectionProblem(path: string): Promise<string> {
  const kind = await kindOfFile(path);
  if (kind !== undefined) return `${path} is a ${kind}, not a socket: ${samePath}`;
  const error = await connectionError(path);
  switch (error?.code) {
    case undefined:
      return `${path}: what listens there does not respond as a gRPC server`;
    case 'ENOENT':
      return `ENOENT: there is no ${path}: has the driver started, and ${samePath}`;
    case 'ECONNREFUSED':
      return `ECONNREFUSED: nothing listens on ${path}: the driver has ended or is not ready, or an earlier process left the socket behind`;
    case 'EACCES':
    case 'EPERM':
      return `${error.code}: ${await refusal(path)}: run both containers as the same user, or let the driver open its socket to this one (--csi-address=${path})`;
    default:
      return `${error?.message ?? ''}: ${samePath}`;
  }
}

/** What the path is instead of a socket; nothing for a socket, and where it cannot be read. */
async function kindOfFile(path: string): Promise<string | undefined> {
  try {
    const file = await stat(path);
    if (file.isSocket()) return undefined;
    return file.isDirectory() ? 'directory' : 'file';
  } catch {
    return undefined;
  }
}

function connectionError(path: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('error', resolve);
    socket.once('connect', () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}

async function refusal(path: string): Promise<string> {
  const user = `this process runs as ${process.geteuid?.()}:${process.getegid?.()}`;
  try {
    const { uid, gid, mode } = await stat(path);
    return `${path} belongs to ${uid}:${gid} with mode ${(mode & 0o7777).toString(8).padStart(4, '0')}, ${user}`;
  } catch {
    return `${path} is in a folder that may not be entered, ${user}`;
  }
}
