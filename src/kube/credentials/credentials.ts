import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { ExecPlugin } from './exec-plugin.ts';
import { KubeConfigError } from './kubeconfig-files.ts';
import type { LoadedKubeConfig } from './kube-config.ts';
import { OidcToken } from './oidc-token.ts';
import { systemRoots } from './system-roots.ts';

interface CredentialsOptions {
  /** Reads the configuration; called at start and at each renewal. */
  load: () => LoadedKubeConfig;
  clock: Clock;
  logger: Logger;
}

/** A token read from a file is used for 60 s less 10 s of leeway, as in client-go. */
const tokenFileLifeMs = 50_000;
/** Credentials of plugins are checked this often; a plugin itself runs only when its last ones have expired. */
const pluginHeaderLifeMs = 10_000;
/** Pause between two comparisons of certificate files, in milliseconds. */
const certificateCheckMs = 300_000;
/** The same while connections fail. */
const certificateRecheckMs = 1000;

/** Headers and TLS settings for requests, renewed when files or plugins give new ones. */
export class Credentials implements RequestCredentials {
  readonly serverUrl: URL;
  readonly proxyUrl: string | undefined;
  readonly disableCompression: boolean;
  readonly #load: () => LoadedKubeConfig;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #loaded: LoadedKubeConfig;
  #plugin: ExecPlugin | undefined;
  #oidcToken: OidcToken | undefined;
  /** From the plugin, instead of certificate files. */
  #pluginPair: Pick<TlsSettings, 'cert' | 'key'> = {};
  #headers: RequestHeaders = {};
  #headersUntilMs = -Infinity;
  #headersLoading: Promise<RequestHeaders> | undefined;
  #tls: TlsSettings;
  #tlsText: string;
  #tlsCheckAtMs: number;
  #tlsRecheckAtMs: number;
  /** Why files could not be used the last time: the same problem is logged once, not at each try. */
  #tlsProblem: string | undefined;
  #tokenProblem: string | undefined;
  #generation = 0;
  /** Read once, as in Go programs: there may be hundreds of files. */
  #systemRoots: string | undefined;

  /** @throws {KubeConfigError} when the configuration cannot be used. */
  constructor(options: CredentialsOptions) {
    this.#load = options.load;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#loaded = options.load();
    this.serverUrl = new URL(this.#loaded.cluster.server);
    this.proxyUrl = this.#loaded.proxyUrl;
    this.disableCompression = this.#loaded.cluster['disable-compression'] === true;
    if (this.#loaded.problem !== undefined) this.#logger.error({}, this.#loaded.problem);
    this.#plugin = this.#makePlugin();
    this.#oidcToken = this.#makeOidcToken();
    this.#tls = this.#readTls();
    this.#tlsText = fingerprint(this.#tls);
    const nowMs = this.#clock.monotonicMs();
    this.#tlsCheckAtMs = nowMs + certificateCheckMs;
    this.#tlsRecheckAtMs = nowMs + certificateRecheckMs;
  }

  /** Rises with each renewal: shows whether a failed request used the newest credentials. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Whether TLS connections to others than the API server are made, that is to an identity provider or a proxy: these use the
   * default certificate authorities of the process.
   */
  get needsDefaultTrust(): boolean {
    const { user } = this.#loaded;
    return Boolean(user['auth-provider']) || this.proxyUrl?.startsWith('https:') === true;
  }

  /** The authentication headers; none for plain http, except to a loopback address. */
  headers(): RequestHeaders | Promise<RequestHeaders> {
    if (this.serverUrl.protocol === 'http:' && !isLoopback(this.serverUrl.hostname)) return {};
    if (this.#clock.monotonicMs() < this.#headersUntilMs) return this.#headers;
    this.#headersLoading ??= this.#loadHeaders().finally(() => {
      this.#headersLoading = undefined;
    });
    return this.#headersLoading;
  }

  /** The TLS settings; compare by identity: another object means that connections should be recreated. */
  tls(): TlsSettings {
    if (this.#clock.monotonicMs() >= this.#tlsCheckAtMs) this.#checkTls();
    return this.#tls;
  }

  /** A connection failed, perhaps for its certificates: compare the files before the next one. */
  recheckTls(): void {
    this.#tlsCheckAtMs = Math.min(this.#tlsCheckAtMs, this.#tlsRecheckAtMs);
  }

  /** The server returned 401 to a request made with `generation`: read everything again before the next one. */
  renew(generation: number): void {
    if (generation !== this.#generation) return; // another request has renewed them meanwhile
    this.#generation++;
    this.#headersUntilMs = -Infinity;
    try {
      this.#loaded = this.#load();
      this.#plugin = this.#makePlugin(); // a new plugin has no credentials yet
      this.#oidcToken = this.#makeOidcToken();
    } catch (error) {
      this.#logger.error({ err: error }, 'Credentials could not be read again, the old ones stay in use');
    }
    this.#checkTls();
  }

  #makePlugin(): ExecPlugin | undefined {
    const { cluster, user, environment } = this.#loaded;
    if (!user.exec) return undefined;
    const ca = content(cluster, 'certificate-authority');
    return new ExecPlugin({
      config: user.exec,
      environment,
      clock: this.#clock,
      cluster: {
        server: cluster.server,
        'tls-server-name': cluster['tls-server-name'],
        'insecure-skip-tls-verify': cluster['insecure-skip-tls-verify'] === true || undefined,
        'certificate-authority-data': ca?.toString('base64'),
        'proxy-url': cluster['proxy-url'],
      },
    });
  }

  #makeOidcToken(): OidcToken | undefined {
    const provider = this.#loaded.user['auth-provider'];
    return provider?.name === 'oidc' ? new OidcToken(provider.config ?? {}, this.#clock) : undefined;
  }

  async #loadHeaders(): Promise<RequestHeaders> {
    const { user } = this.#loaded;
    const headers = this.#impersonation();
    let lifeMs = tokenFileLifeMs;
    const providedFile = user['auth-provider']?.config?.['tokenFile'];
    if (user.tokenFile) {
      headers['authorization'] = await this.#tokenFromFile(user.tokenFile);
    } else if (user.token) {
      headers['authorization'] = `Bearer ${user.token}`;
    } else if (user.username) {
      const pair = `${user.username}:${user.password ?? ''}`;
      headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`;
    } else if (this.#plugin !== undefined) {
      lifeMs = pluginHeaderLifeMs;
      const { token, certificate, key } = await this.#plugin.credential();
      if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
      this.#usePair(certificate, key);
    } else if (providedFile) {
      headers['authorization'] = await this.#tokenFromFile(providedFile);
    } else if (this.#oidcToken !== undefined) {
      lifeMs = pluginHeaderLifeMs;
      const token = await this.#oidcToken.token();
      if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
    }
    this.#headers = headers;
    this.#headersUntilMs = this.#clock.monotonicMs() + lifeMs;
    return headers;
  }

  #impersonation(): RequestHeaders {
    const { as, 'as-groups': groups, 'as-uid': uid, 'as-user-extra': extra } = this.#loaded.user;
    if (!as) return {};
    const headers: RequestHeaders = { 'impersonate-user': as };
    if (groups?.length) headers['impersonate-group'] = [...groups];
    if (uid) headers['impersonate-uid'] = uid;
    for (const [key, values] of Object.entries(extra ?? {})) {
      headers[`impersonate-extra-${encodeURIComponent(key.toLowerCase())}`] = [...values];
    }
    return headers;
  }

  /** A plugin's certificate replaces the files of the configuration, also when these are read again. */
  #usePair(cert: string | undefined, key: string | undefined): void {
    this.#pluginPair = cert === undefined || key === undefined ? {} : { cert, key };
    this.#useTls({ ...this.#tls, ...this.#pluginPair });
  }

  async #tokenFromFile(file: string): Promise<string> {
    try {
      const token = (await readFile(file, 'utf8')).trim();
      if (token === '') throw new Error(`${file} is empty`);
      this.#tokenProblem = undefined;
      return `Bearer ${token}`;
    } catch (error) {
      const previous = this.#headers['authorization'];
      if (typeof previous !== 'string') throw error;
      const { message } = error as Error;
      if (message !== this.#tokenProblem) {
        this.#logger.error({ err: error, file }, 'The token file could not be read, the previous token stays in use');
      }
      this.#tokenProblem = message;
      return previous;
    }
  }

  #checkTls(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tlsCheckAtMs = nowMs + certificateCheckMs;
    this.#tlsRecheckAtMs = nowMs + certificateRecheckMs;
    try {
      const tls = this.#readTls();
      if (fingerprint(tls) !== this.#tlsText) {
        checkUsable(tls);
        this.#useTls(tls);
      }
      this.#tlsProblem = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#tlsProblem) {
        this.#logger.error({ err: error }, 'Certificate files could not be used, the previous ones stay in use');
      }
      this.#tlsProblem = message;
    }
  }

  #useTls(tls: TlsSettings): void {
    const text = fingerprint(tls);
    if (text === this.#tlsText) return;
    this.#tls = tls;
    this.#tlsText = text;
    this.#logger.info({}, 'Certificates changed, recreating connections');
  }

  #readTls(): TlsSettings {
    const { cluster, user } = this.#loaded;
    const tls: TlsSettings = {};
    const ca = content(cluster, 'certificate-authority');
    const cert = content(user, 'client-certificate');
    const key = content(user, 'client-key');
    if (ca !== undefined) tls.ca = ca;
    else if (this.serverUrl.protocol === 'https:' && cluster['insecure-skip-tls-verify'] !== true) {
      this.#systemRoots ??= systemRoots(this.#loaded.environment);
      if (this.#systemRoots !== undefined) tls.ca = this.#systemRoots;
    }
    if (cert !== undefined) tls.cert = cert;
    if (key !== undefined) tls.key = key;
    if (cluster['tls-server-name'] !== undefined) tls.servername = cluster['tls-server-name'];
    if (cluster['insecure-skip-tls-verify'] === true) tls.rejectUnauthorized = false;
    return { ...tls, ...this.#pluginPair };
  }
}

/** @throws {Error} when a file is empty or half written, or the key belongs to another certificate. */
function checkUsable(tls: TlsSettings): void {
  if (tls.ca !== undefined) new X509Certificate(tls.ca); // a context takes any text for a CA
  createSecureContext(tls);
}

/** Inline base64 data wins over the file form. @throws {KubeConfigError} for a file that cannot be read. */
function content<Field extends string>(
  fields: Readonly<Partial<Record<Field | `${Field}-data`, string>>>,
  field: Field,
): Buffer | undefined {
  const data: string | undefined = fields[`${field}-data`];
  const file: string | undefined = fields[field];
  if (data) return Buffer.from(data, 'base64');
  if (!file) return undefined;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new KubeConfigError(`invalid configuration: unable to read ${field} ${file}: ${(error as Error).message}`, {
      cure: `Correct the path, which starts at the folder of the kubeconfig file, or put the content into ${field}-data`,
      cause: error,
    });
  }
}

function fingerprint(tls: TlsSettings): string {
  return JSON.stringify([tls.ca, tls.cert, tls.key].map((part) => part?.toString()));
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}

/** TLS settings of a connection; a new object whenever a file behind them changed. */
export interface TlsSettings {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  servername?: string;
  rejectUnauthorized?: boolean;
}

/** Headers of a request; a header with a list is sent several times. */
export type RequestHeaders = Record<string, string | string[]>;

/** The address of the API server, and the credentials of each request to it. */
export interface RequestCredentials {
  readonly serverUrl: URL;
  readonly proxyUrl: string | undefined;
  /** Compressed responses must not be requested. */
  readonly disableCompression: boolean;
  /** Rises with each renewal: shows whether a failed request used the newest credentials. */
  readonly generation: number;
  /** The authentication headers; a promise while they are read. */
  headers(): RequestHeaders | Promise<RequestHeaders>;
  /** The TLS settings; compare by identity: another object means that connections should be recreated. */
  tls(): TlsSettings;
  /** A connection failed, perhaps for its certificates: compare the files before the next one. Cheap, may be called often. */
  recheckTls(): void;
  /** The server returned 401 to a request made with `generation`: read everything again before the next one. */
  renew(generation: number): void;
}
