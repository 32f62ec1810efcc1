/** A host and port to listen on; an empty host means every interface. */
interface ListenAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** An address that no server can listen on; the message is Go's. */
export class ListenAddressError extends Error {
  override readonly name = 'ListenAddressError';
}

/** Port names that work without a services file (IANA service names). */
const services = new Map([
  ['http', 80],
  ['https', 443],
  ['domain', 53],
  ['ftp', 21],
  ['ftps', 990],
  ['gopher', 70],
  ['imap2', 143],
  ['imap3', 220],
  ['imaps', 993],
  ['pop3', 110],
  ['pop3s', 995],
  ['smtp', 25],
  ['submissions', 465],
  ['ssh', 22],
  ['telnet', 23],
]);

/**
 * Reads a listen address in Go's form: `:8080`, `host:port`, `[::1]:8080`, a service name as port, or no port behind
 * the colon for any free one.
 *
 * @throws {ListenAddressError} such as `listen tcp: address foo: missing port in address`.
 * @see Go package `net`, `Listen` and `SplitHostPort`.
 */
export function parseListenAddress(address: string): ListenAddress {
  const { host, port } = splitHostPort(address);
  return { host, port: portNumber(port) };
}

function splitHostPort(address: string): { host: string; port: string } {
  const colon = address.lastIndexOf(':');
  if (colon < 0) throw badAddress(address, 'missing port in address');
  const port = address.slice(colon + 1);
  if (!address.startsWith('[')) {
    const host = address.slice(0, colon);
    if (host.includes(':')) throw badAddress(address, 'too many colons in address');
    checkBrackets(address, host + port);
    return { host, port };
  }
  const end = address.indexOf(']');
  if (end < 0) throw badAddress(address, "missing ']' in address");
  if (end + 1 === address.length) throw badAddress(address, 'missing port in address');
  if (end + 1 !== colon) {
    throw badAddress(address, address[end + 1] === ':' ? 'too many colons in address' : 'missing port in address');
  }
  checkBrackets(address, address.slice(1, end) + port);
  return { host: address.slice(1, end), port };
}

function checkBrackets(address: string, parts: string): void {
  if (parts.includes('[')) throw badAddress(address, "unexpected '[' in address");
  if (parts.includes(']')) throw badAddress(address, "unexpected ']' in address");
}

function badAddress(address: string, reason: string): ListenAddressError {
  return new ListenAddressError(`listen tcp: address ${address}: ${reason}`);
}

function portNumber(port: string): number {
  if (port === '') return 0;
  if (!/^[+-]?[0-9]+$/.test(port)) {
    const known = services.get(port.toLowerCase());
    if (known === undefined) throw new ListenAddressError(`listen tcp: lookup tcp/${port}: unknown port`);
    return known;
  }
  const number = Number(port);
  if (number < 0 || number > 65_535) throw new ListenAddressError(`listen tcp: address ${port}: invalid port`);
  return number;
}
