import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** Names that no public DNS zone has: without a dot, those of Services, and `localhost` below (RFC 6761, section 6.3). */
const privateName = /^[^.]*$|\.(localhost|svc|cluster\.local)$/;

/**
 * Whether the page of a stranger may have sent the request: it has a name in the stranger's own DNS zone, and the name now
 * has the address of this server, so that to the browser both are one origin. An address and a private name cannot be given
 * away like that. A name to which the browser adds `Sec-Fetch-Site` was reached over TLS (Fetch Metadata Request Headers,
 * "Sec-Fetch-Site"): the server in front of this one has a certificate for it, and a page cannot set the header itself.
 */
export function mayBeRebound({ headers }: IncomingMessage): boolean {
  const host = (headers.host ?? '').toLowerCase().replace(/:[0-9]*$/, '');
  const name = host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  return isIP(name) === 0 && !privateName.test(name) && headers['sec-fetch-site'] === undefined;
}
