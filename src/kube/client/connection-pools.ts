import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import { TransportError } from './api-error.ts';
import nodeTls, { createSecureContext, type SecureContext } from 'node:tls';
import { Agent, buildConnector, type Dispatcher, Pool, ProxyAgent } from 'undici';
import type { RequestCredentials, TlsSettings } from '../credentials/credentials.ts';

const connectTimeoutMs = 30_000;
/** Shorter than the API server's own 90 s: a write must not go out over a connection that is being closed. */
const idleConnectionMs = 60_000;

/** After this silence the operating system probes whether the peer is there (TCP keep-alive), and gives up 10 s later. */
const keepAliveDelayMs = 20_000;

/**
 * The connections to one API server, most of them kept alive, recreated when the certificates change, and when one of them turned
 * out to be dead: the others may lead to the same dead server.
 */
export class ConnectionPools {
  readonly #credentials: RequestCredentials;
  readonly #maxConnections: number | null;
  readonly #clock: Clock;
  #madeAtMs: number;
  readonly #onDead: (reason: Error, suspectSinceMs: number) => void;
  #tls: TlsSettings;
  #pools: Pools;

  /**
   * @param options.maxConnections - of unary requests; undefined: no limit.
   * @param options.onDead - called when a connection of `streaming` is dead, with the moment from which it was suspect, in monotonic
   * milliseconds: requests from before may be as dead.
   */
  constructor(options: {
    credentials: RequestCredentials;
    maxConnections: number | undefined;
    clock: Clock;
    onDead: (reason: Error, suspectSinceMs: number) => void;
  }) {
    this.#onDead = options.onDead;
    this.#clock = options.clock;
    this.#madeAtMs = options.clock.monotonicMs();
    this.#credentials = options.credentials;
    this.#maxConnections = options.maxConnections ?? null;
    this.#tls = options.credentials.tls();
    this.#pools = this.#makePools();
  }

  /** For requests with one small response. */
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

  /**
   * Called when a connection that was opened before this moment, in monotonic milliseconds, is dead: from now on no request is sent
   * over one that is as old. Requests under way go on.
   */
  distrust(openedBeforeMs: number): void {
    if (this.#madeAtMs > openedBeforeMs) return; // it belonged to earlier pools
    const old = Object.values(this.#pools);
    this.#pools = this.#makePools();
    this.#madeAtMs = this.#clock.monotonicMs();
    for (const pool of old) pool.close().catch(() => undefined); // ends after the requests under way
  }

  #renew(): void {
    const tls = this.#credentials.tls();
    if (tls === this.#tls) return;
    this.#tls = tls;
    const { unary, streaming, single } = this.#pools;
    this.#pools = this.#makePools();
    for (const pool of [unary, single]) pool.close().catch(() => undefined); // ends after the requests under way
    streaming.destroy().catch(() => undefined); // watches break and resume over new connections
  }

  #makePools(): Pools {
    return makePools({
      tls: this.#tls,
      proxyUrl: this.#credentials.proxyUrl,
      maxConnections: this.#maxConnections,
      onConnection: (socket) => {
        if (!isHttp2(socket)) return;
        const openedAtMs = this.#clock.monotonicMs();
        let suspectSinceMs = openedAtMs;
        endWhenSilent(socket, {
          clock: this.#clock,
          onSuspect: () => {
            suspectSinceMs = this.#clock.monotonicMs();
            this.distrust(openedAtMs);
          },
          onDead: (reason) => this.#onDead(reason, suspectSinceMs),
        });
      },
    });
  }
}

/** The transport bounds unary requests, the reflector bounds watches; undici's own timeouts would abort quiet watches. */
const unbounded = { headersTimeout: 0, bodyTimeout: 0 };

type Pools = Record<'unary' | 'streaming' | 'single', Dispatcher>;

/** @param options.onConnection - called for each new connection of `streaming`, except those through a SOCKS proxy. */
function makePools(options: {
  tls: TlsSettings;
  proxyUrl: string | undefined;
  maxConnections: number | null;
  onConnection: (socket: Socket) => void;
}): Pools {
  const { tls, proxyUrl, maxConnections, onConnection } = options;
  const connect = {
    ...prepared(tls),
    timeout: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveDelayMs,
  };
  const common = { keepAliveTimeout: idleConnectionMs, keepAliveMaxTimeout: idleConnectionMs, ...unbounded };
  const isSocks = proxyUrl?.startsWith('socks5:') === true;
  const proxied = {
    uri: proxyUrl ?? '',
    proxyTunnel: true, // else one connection for all
    ...(proxyUrl?.startsWith('https:') === true && { proxyTls: proxyTrust(tls) }),
    ...(isSocks && proxyLogin(new URL(proxyUrl))),
    // a proxy that accepts connections and says nothing would hold up all requests for five minutes
    clientFactory: (origin: URL, options: object) => new Pool(origin, { ...options, headersTimeout: connectTimeoutMs }),
  };
  /** @param pipelining - 1 keeps connections alive, 0 closes each after its response. */
  const makePool = (pipelining: 0 | 1, connections: number | null): Dispatcher => {
    const options = { ...common, allowH2: false, pipelining, connections };
    return proxyUrl === undefined
      ? new Agent({ ...options, connect })
      : new ProxyAgent({ ...options, ...proxied, requestTls: connect });
  };
  const makeHttp2Pool = (): Dispatcher => {
    const requestTls = { ...connect, allowH2: true, preferH2: true };
    const options = { ...common, allowH2: true, h2Options: { pingInterval: pingMs } };
    if (proxyUrl === undefined) {
      return new Agent({ ...options, connect: observed(buildConnector(requestTls), onConnection) });
    }
    return new ProxyAgent({
      ...options,
      ...proxied,
      requestTls,
      factory: (origin, pool: Pool.Options & { connect: buildConnector.connector }) =>
        new Pool(origin, { ...pool, connect: observed(pool.connect, onConnection) }),
    });
  };
  const unary = makePool(1, maxConnections); // HTTP/2 costs a quarter more CPU for small responses
  const streaming = isSocks ? makePool(1, null) : makeHttp2Pool();
  return { unary, streaming, single: makePool(0, null) };
}

/** The certificate of a proxy may be of the API server's authority, as in client-go, or of one that this machine trusts. */
function proxyTrust({ ca, rejectUnauthorized = true }: TlsSettings): {
  secureContext: SecureContext;
  rejectUnauthorized: boolean;
} {
  const trusted = nodeTls.getCACertificates('default');
  return {
    secureContext: createSecureContext({ ca: ca === undefined ? trusted : [...trusted, ca] }),
    rejectUnauthorized,
  };
}

/** For a SOCKS proxy undici would take name and password as the URL encodes them. */
function proxyLogin({ username, password }: URL): { username: string; password: string } {
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}

function observed(connect: buildConnector.connector, onConnection: (socket: Socket) => void): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...[error, socket]) => {
      if (error === null) onConnection(socket);
      callback(...([error, socket] as Parameters<typeof callback>));
    });
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

// An HTTP/2 connection may be dead, such as when the server behind a load balancer died silently: the operating system notices
// nothing then, since the load balancer goes on acknowledging what is sent.

/** How often undici sends a PING frame, in milliseconds: a connection that responds to it is alive. */
const pingMs = 10_000;
/** How often a connection is checked, and after how many checks in a row without a byte it is suspect, and dead. */
const checkMs = 5000;
const suspectChecks = 3;
const maxSilentChecks = 5;

/**
 * Destroys the connection after 25 to 30 s without a byte. Checks are counted, not time: a process that was paused reads what came
 * meanwhile before the next check.
 *
 * @param options.onSuspect - called after 15 to 20 s without a byte.
 * @param options.onDead - called before the connection is destroyed.
 */
function endWhenSilent(
  socket: Socket,
  { clock, onSuspect, onDead }: { clock: Clock; onSuspect: () => void; onDead: (reason: TransportError) => void },
): void {
  let bytes = socket.bytesRead;
  let silentChecks = 0;
  const check = (): void => {
    if (socket.destroyed) return;
    silentChecks = socket.bytesRead === bytes ? silentChecks + 1 : 0;
    bytes = socket.bytesRead;
    if (silentChecks === suspectChecks) onSuspect();
    if (silentChecks < maxSilentChecks) {
      clock.after(checkMs, check);
      return;
    }
    const message = `no byte came for ${(checkMs * maxSilentChecks) / 1000} s, not even the response to a PING`;
    const reason = new TransportError(message, { code: 'ECONNRESET' });
    onDead(reason);
    socket.destroy(reason);
  };
  clock.after(checkMs, check);
}

/** Whether the server chose HTTP/2 for the connection. */
function isHttp2(socket: Socket): boolean {
  return (socket as Partial<TLSSocket>).alpnProtocol === 'h2';
}
