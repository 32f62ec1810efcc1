/** An address that cannot be a CSI socket: the process must not start. */
export class CsiAddressError extends Error {
  override readonly name = 'CsiAddressError';
}

/**
 * The gRPC target of a socket address: an absolute path or `unix:///absolute/path`, nothing else.
 *
 * @returns the target in the form `unix:///path`.
 * @throws {CsiAddressError} in the reference's words, so that what people search for is found.
 */
export function csiTarget(address: string): string {
  if (address.startsWith('/')) return `unix://${address}`;
  const scheme = 'unix://';
  if (!address.startsWith(scheme)) {
    throw new CsiAddressError('OnConnectionLoss callback only supported for unix:// addresses');
  }
  const rest = address.slice(scheme.length);
  if (rest === '') throw new CsiAddressError('unix:// names no socket');
  if (rest.startsWith('/')) return address;
  const authority = rest.split('/', 1)[0] ?? rest;
  throw new CsiAddressError(
    `failed to exit idle mode: failed to start resolver: invalid (non-empty) authority: ${authority}`,
  );
}
