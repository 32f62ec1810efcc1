/** The proxy to the API server, if any. */
import { BlockList, isIP } from 'node:net';
import { KubeConfigError } from './kubeconfig-files.ts';

export interface ProxySource {
  /** `proxy-url` of the cluster in the kubeconfig: overrides the environment. */
  proxyUrl?: string | undefined;
  /** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, or the same in lower case. */
  environment: Record<string, string | undefined>;
}

/** `socks5h` is the same as `socks5`, as in Go: the proxy resolves the name of the server in both. */
const schemes: ReadonlySet<string> = new Set(['http:', 'https:', 'socks5:', 'socks5h:']);

/**
 * The proxy for requests to a server. The environment is read as by Go programs: the variable of the server's
 * scheme, upper case first; a loopback address has no proxy.
 *
 * @returns its URL; undefined: none.
 * @throws {KubeConfigError} when it is not a URL of http, https or socks5.
 */
export function proxyFor(server: URL, { proxyUrl, environment }: ProxySource): string | undefined {
  if (proxyUrl !== undefined && proxyUrl !== '') return checked(proxyUrl, 'proxy-url');
  const name = server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const proxy = variable(environment, name);
  if (proxy === '' || isLocal(server.hostname)) return undefined;
  if (
    variable(environment, 'NO_PROXY')
      .split(',')
      .some((entry) => matches(entry.trim().toLowerCase(), server))
  ) {
    return undefined;
  }
  return checked(/^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`, name);
}

function variable(environment: ProxySource['environment'], name: string): string {
  return environment[name] || environment[name.toLowerCase()] || '';
}

function checked(proxyUrl: string, source: string): string {
  const url = URL.parse(proxyUrl);
  if (url === null || !schemes.has(url.protocol) || !isDecodable(url)) {
    throw new KubeConfigError(
      `${source}: ${JSON.stringify(withoutUser(proxyUrl))} is not an http, https or socks5 URL, or its name and password are not encoded`,
      {
        cure: `Correct or remove ${source}, such as http://192.0.2.1:3128`,
      },
    );
  }
  const scheme = url.protocol === 'socks5h:' ? 'socks5:' : url.protocol; // in lower case
  return scheme + proxyUrl.slice(proxyUrl.indexOf(':') + 1);
}

/** Whether name and password can be decoded, as undici does it. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** Hides the name and the password, which may be why the URL is none: these must not end up in a log. */
function withoutUser(proxyUrl: string): string {
  return proxyUrl.replace(/^([a-z0-9+.-]+:\/\/)?.*@/is, '$1xxxxx@');
}

function isLocal(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}

/** Whether an entry of `NO_PROXY` names the server: `*`, a domain, an address or a block, perhaps with a port. */
function matches(entry: string, server: URL): boolean {
  if (entry === '' || entry === '*') return entry === '*';
  const host = server.hostname.replace(/^\[|\]$/g, '');
  if (entry.includes('/')) return isInBlock(host, entry);
  const { name, port } = withoutPort(entry);
  if (port !== '' && port !== (server.port || (server.protocol === 'https:' ? '443' : '80'))) return false;
  if (isIP(name) !== 0) return sameAddress(host, name);
  const suffix = name.replace(/^\*/, '');
  return suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
}

function withoutPort(entry: string): { name: string; port: string } {
  const [, bracketed, plain, port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
  return { name: bracketed ?? plain ?? entry, port }; // a bare IPv6 address matches no form: it is the name
}

function isInBlock(host: string, block: string): boolean {
  const [network = '', prefix = ''] = block.split('/');
  const [family, length] = [isIP(network), Number(prefix)];
  if (family === 0 || isIP(host) !== family || !/^\d+$/.test(prefix) || length > (family === 4 ? 32 : 128))
    return false;
  const list = new BlockList();
  list.addSubnet(network, length, family === 4 ? 'ipv4' : 'ipv6');
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

function sameAddress(host: string, address: string): boolean {
  return isInBlock(host, `${address}/${isIP(address) === 4 ? 32 : 128}`);
}
