import { createSecureContext, type SecureContext } from 'node:tls';
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import type { RequestCredentials, TlsSettings } from './request-credentials.ts';

const connectTimeoutMs = 30_000;
/** Shorter than the API server's own 90 s: a write must not go out over a connection that is being closed. */
const idleConnectionMs = 60_000;

/** The connections of HTTP/1.1 to one API server, most of them kept alive, recreated when the certificates change. */
export class ConnectionPools {
  readonly #credentials: RequestCredentials;
  readonly #maxConnections: number | null;
  #tls: TlsSettings;
  #pools: Pools;

  /** @param options.maxConnections - of unary requests; undefined: no limit. */
  constructor(options: { credentials: RequestCredentials; maxConnections: number | undefined }) {
    this.#credentials = options.credentials;
    this.#maxConnections = options.maxConnections ?? null;
    this.#tls = options.credentials.tls();
    this.#pools = makePools(this.#tls, options.credentials.proxyUrl, this.#maxConnections);
  }

  /** For requests with one small answer. */
  get unary(): Dispatcher {
    this.#renew();
    return this.#pools.unary;
  }

  /** For lists and watches: can be destroyed when certificates change without aborting a write. */
  get streaming(): Dispatcher {
    this.#renew();
    return this.#pools.streaming;
  }

  /** For a request that needs a new connection, which is closed with the response. */
  get single(): Dispatcher {
    this.#renew();
    return this.#pools.single;
  }

  /** Aborts what is under way and closes all connections. */
  async destroy(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.destroy()));
  }

  #renew(): void {
    const { proxyUrl } = this.#credentials;
    const tls = this.#credentials.tls();
    if (tls === this.#tls) return;
    this.#tls = tls;
    const { unary, streaming, single } = this.#pools;
    this.#pools = makePools(tls, proxyUrl, this.#maxConnections);
    for (const pool of [unary, single]) pool.close().catch(() => undefined); // ends after the requests under way
    streaming.destroy().catch(() => undefined); // watches break and resume over new connections
  }
}

/** The transport bounds unary requests, the reflector bounds watches; undici's own timeouts would abort quiet watches. */
const unbounded = { headersTimeout: 0, bodyTimeout: 0 };

type Pools = Record<'unary' | 'streaming' | 'single', Dispatcher>;

function makePools(tls: TlsSettings, proxyUrl: string | undefined, maxConnections: number | null): Pools {
  const connect = { ...prepared(tls), timeout: connectTimeoutMs, keepAlive: true, keepAliveInitialDelay: 30_000 };
  const common = {
    allowH2: false, // HTTP/1.1 costs half the CPU
    keepAliveTimeout: idleConnectionMs,
    keepAliveMaxTimeout: idleConnectionMs,
    ...unbounded,
  };
  /** @param pipelining - 1 keeps connections alive, 0 closes each after its response. */
  const makePool = (pipelining: 0 | 1, connections: number | null): Dispatcher => {
    const options = { ...common, pipelining, connections };
    return proxyUrl === undefined
      ? new Agent({ ...options, connect })
      : new ProxyAgent({ ...options, uri: proxyUrl, requestTls: connect, proxyTunnel: true }); // else one connection for all
  };
  return { unary: makePool(1, maxConnections), streaming: makePool(1, null), single: makePool(0, null) };
}

/** Reads the certificates once, which takes some 30 ms for a system's store, instead of for each connection. */
function prepared(tls: TlsSettings): TlsSettings & { secureContext?: SecureContext } {
  const { ca, cert, key, ...others } = tls;
  try {
    return { ...others, secureContext: createSecureContext({ ca, cert, key }) };
  } catch {
    return tls; // each connection then fails with the reason
  }
}
