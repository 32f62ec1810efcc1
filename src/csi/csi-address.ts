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
