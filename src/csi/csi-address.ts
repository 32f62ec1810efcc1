import { stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { goQuote } from '../base/go-quote.ts';

/** An address that cannot be a CSI socket: the process must not start. */
export class CsiAddressError extends Error {
  override readonly name = 'CsiAddressError';

  /** @param why - in the words of the original, so that a search for the text finds it. */
  constructor(why: string, address: string) {
    super(`${why}: --csi-address must be an absolute path, or unix:// with one, not ${goQuote(address)}`);
  }
}

/**
 * The gRPC target of a socket address: an absolute path or `unix:///absolute/path`, nothing else.
 *
 * @returns the target in the form `unix:///path`.
 * @throws {CsiAddressError} for everything else.
 */
export function csiTarget(address: string): string {
  if (address.startsWith('/')) return `unix://${address}`;
  const scheme = 'unix://';
  if (!address.startsWith(scheme)) {
    throw new CsiAddressError('OnConnectionLoss callback only supported for unix:// addresses', address);
  }
  const rest = address.slice(scheme.length);
  if (rest === '') throw new CsiAddressError('unix:// names no socket', address);
  if (rest.startsWith('/')) return address;
  const authority = rest.split('/', 1)[0] ?? rest;
  throw new CsiAddressError(
    `failed to exit idle mode: failed to start resolver: invalid (non-empty) authority: ${authority}`,
    address,
  );
}

/** The path of a target that `csiTarget` gave. */
export function socketPath(target: string): string {
  return target.slice('unix://'.length);
}

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
