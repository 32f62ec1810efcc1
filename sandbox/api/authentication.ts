import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../src/base/clock.ts';

/** Who makes a request (Kubernetes, "Authenticating"). */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
}

/** How users prove who they are. */
export interface AuthenticationOptions {
  /** Users by bearer token. Without it who shows no credentials is `system:admin`. */
  readonly tokens?: Readonly<Record<string, User>>;
  /** Lets requests without credentials in as `system:anonymous`. */
  readonly anonymous?: boolean;
}

const everyone: User = { name: 'system:admin', groups: ['system:masters', 'system:authenticated'] };
const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

interface Credential {
  readonly user: User;
  /** Set for a token of a service account, which it does not outlive. */
  readonly account?: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Monotonic time after which the token is worth nothing. */
  readonly untilMs: number;
}

/** The uid of a service account that exists. */
type AccountLookup = (namespace: string, name: string) => string | undefined;

/** Knows the bearer tokens; they can be granted and revoked while the server runs. */
export class Authentication {
  readonly #clock: Clock;
  readonly #accountUid: AccountLookup;
  readonly #required: boolean;
  readonly #anonymous: boolean;
  readonly #tokens = new Map<string, Credential>();

  constructor(options: AuthenticationOptions & { clock: Clock; accountUid: AccountLookup }) {
    this.#clock = options.clock;
    this.#accountUid = options.accountUid;
    this.#required = options.tokens !== undefined;
    this.#anonymous = options.anonymous ?? false;
    for (const [token, user] of Object.entries(options.tokens ?? {})) this.grant(token, user);
  }

  /** Makes `token` stand for `user` from now on, replacing what it stood for. */
  grant(token: string, user: User): void {
    const groups = new Set([...user.groups, 'system:authenticated']);
    this.#tokens.set(token, { user: { ...user, groups: [...groups] }, untilMs: Infinity });
  }

  /** Makes a token worthless; unknown ones are ignored. */
  revoke(token: string): void {
    this.#tokens.delete(token);
  }

  /** A new token for a service account. */
  mint(namespace: string, name: string, uid: string, expiresInMs: number): string {
    const token = randomBytes(32).toString('base64url');
    this.#tokens.set(token, {
      user: serviceAccountUser(namespace, name, uid),
      account: { namespace, name, uid },
      untilMs: this.#clock.monotonicMs() + expiresInMs,
    });
    return token;
  }

  /** The user of a token, if it is good. */
  userOfToken(token: string): User | undefined {
    const credential = this.#tokens.get(token);
    if (credential === undefined || credential.untilMs <= this.#clock.monotonicMs()) return undefined;
    const { account, user } = credential;
    return account === undefined || this.#accountUid(account.namespace, account.name) === account.uid
      ? user
      : undefined;
  }

  /** The user of a request; `undefined` means 401. */
  authenticate(request: IncomingMessage): User | undefined {
    const header = request.headers.authorization;
    if (header !== undefined) return this.userOfToken(/^bearer\s+(\S+)$/i.exec(header)?.[1] ?? '');
    const user = certificateUser(request);
    if (user !== undefined || !this.#required) return user ?? everyone;
    return this.#anonymous ? anonymous : undefined;
  }
}

/** The user a service account is, with the groups that come with it. */
export function serviceAccountUser(namespace: string, name: string, uid?: string): User {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    ...(uid === undefined ? {} : { uid }),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
}

/** Client certificates: the common name is the user, the organisations are the groups. */
function certificateUser({ socket }: IncomingMessage): User | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const subject = socket.getPeerCertificate().subject as { CN?: string; O?: string | string[] } | undefined;
  if (subject?.CN === undefined) return undefined;
  return { name: subject.CN, groups: [subject.O ?? []].flat().concat('system:authenticated') };
}
