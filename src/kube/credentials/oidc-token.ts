/** Tokens of the authentication provider `oidc` (Kubernetes page "Authenticating", "OpenID Connect Tokens"). */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import type { Clock } from '../../base/clock.ts';

/** Max time of one request to the identity provider, in milliseconds. */
const timeoutMs = 30_000;

/** The id token of a kubeconfig, refreshed where it has expired and everything that takes is there. */
export class OidcToken {
  readonly #config: Readonly<Record<string, string>>;
  readonly #clock: Pick<Clock, 'wallMs'>;
  #idToken: string | undefined;
  #refreshToken: string | undefined;

  /** @param config - `users[].user.auth-provider.config` of a kubeconfig. */
  constructor(config: Readonly<Record<string, string>>, clock: Pick<Clock, 'wallMs'>) {
    this.#config = config;
    this.#clock = clock;
    this.#idToken = config['id-token'];
    this.#refreshToken = config['refresh-token'];
  }

  /** @returns undefined where there is none, or an expired one alone. @throws {Error} when the identity provider gives none. */
  async token(): Promise<string | undefined> {
    if (!this.#idToken || this.#clock.wallMs() <= expiryMs(this.#idToken)) return this.#idToken;
    const { 'client-id': clientId, 'idp-issuer-url': issuer } = this.#config;
    if (!clientId || !issuer || !this.#refreshToken) return undefined;
    await using agent = this.#agent();
    const discovery = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, agent);
    const given = await fetchJson(String(discovery['token_endpoint']), agent, {
      ...this.#secretHeader(clientId),
      form: { grant_type: 'refresh_token', refresh_token: this.#refreshToken, client_id: clientId },
    });
    if (typeof given['id_token'] !== 'string') throw new Error(`${issuer}: the response has no id_token`);
    this.#idToken = given['id_token'];
    if (typeof given['refresh_token'] === 'string') this.#refreshToken = given['refresh_token'];
    return this.#idToken;
  }

  #agent(): Agent & AsyncDisposable {
    const { 'idp-certificate-authority-data': data, 'idp-certificate-authority': file } = this.#config;
    const ca = data ? Buffer.from(data, 'base64') : file ? readFileSync(file) : undefined;
    const agent = new Agent({ ...(ca !== undefined && { connect: { ca } }), headersTimeout: timeoutMs });
    return Object.assign(agent, { [Symbol.asyncDispose]: () => agent.close() });
  }

  /** RFC 6749, "Client Password". */
  #secretHeader(clientId: string): { authorization?: string } {
    const secret = this.#config['client-secret'];
    if (!secret) return {};
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(secret)}`;
    return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
  }
}

async function fetchJson(
  url: string,
  dispatcher: Agent,
  { form, authorization }: { form?: Record<string, string>; authorization?: string } = {},
): Promise<Record<string, unknown>> {
  const { statusCode, body } = await request(url, {
    dispatcher,
    signal: AbortSignal.timeout(timeoutMs),
    ...(form !== undefined && { method: 'POST', body: new URLSearchParams(form).toString() }),
    headers: {
      accept: 'application/json',
      ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...(authorization !== undefined && { authorization }),
    },
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${url} responded with status ${statusCode}`);
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new Error(`${url} did not respond with JSON`); // without the cause: its message may quote a token
  }
}

/** When a JSON Web Token expires, as wall time in milliseconds; 0: it cannot be read. */
function expiryMs(token: string): number {
  try {
    const payload = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { exp?: number };
    return (payload.exp ?? 0) * 1000;
  } catch {
    return 0;
  }
}
