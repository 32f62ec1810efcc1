import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { Authentication, User } from './authentication.ts';
import { type Authorization, forbiddenPath, impersonate } from './authorization.ts';
import { selectedName } from './selectors.ts';
import type { FaultAction, Faults } from './faults.ts';
import { noSuchPath, StatusError } from './status-error.ts';
import type { PathRequests } from './path-requests.ts';
import { choosePresentation } from './presentation.ts';
import { Reply } from './reply.ts';
import { mediaType, objectTypes, parseObject, readBody } from './request-body.ts';
import type { LoggedRequest, RequestLog } from './request-log.ts';
import { parseTarget, type RequestTarget, type ResourceTarget, type Verb, verbOf } from './request-target.ts';
import { methodNotAllowed, type ResourceRequests } from './resource-requests.ts';
import type { ResourceTypes } from './resource-type.ts';
import { findReview, reviewed } from './reviews.ts';
import type { Store } from './store.ts';

/** What the way of a request through the server consists of. */
export interface RequestHandlerOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly types: ResourceTypes;
  readonly store: Store;
  readonly requestLog: RequestLog;
  readonly faults: Faults;
  readonly authentication: Authentication;
  readonly authorization: Authorization;
  readonly resources: ResourceRequests;
  readonly paths: PathRequests;
}

/** One reason for all: making one per request would cost a stack trace each. */
const clientGone = new Error('the client went away or has its response');

interface Exchange {
  readonly request: IncomingMessage;
  readonly reply: Reply;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly target: RequestTarget;
  readonly verb: Verb | undefined;
  readonly user: User;
  readonly fault: FaultAction | undefined;
  readonly signal: AbortSignal;
}

/**
 * The way of every HTTP request: log, authentication, authorisation, faults, then the response by kind of path. A
 * failure of any step becomes a `Status` body.
 */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  #unavailableUntilMs = 0;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
  }

  /** Responds to one request; never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, logger } = this.#options;
    const reply = new Reply(response, { clock });
    const gone = new AbortController();
    const entry = this.#log(request);
    response.once('close', () => {
      gone.abort(clientGone);
      entry.durationMs = clock.monotonicMs() - entry.atMs;
      if (response.headersSent) entry.status = response.statusCode;
    });
    response.on('error', (err) => logger.debug({ err }, 'a client went away during its response'));
    try {
      await this.#respond(request, reply, entry, gone.signal);
      if (response.headersSent) entry.status = response.statusCode;
    } catch (error) {
      if (gone.signal.aborted) return;
      const status =
        error instanceof StatusError ? error : new StatusError('InternalError', String(error), { cause: error });
      if (!(error instanceof StatusError)) logger.error({ err: error, path: entry.path }, 'a request failed');
      entry.status = status.code;
      reply.error(status);
    }
  }

  async #respond(request: IncomingMessage, reply: Reply, entry: LoggedRequest, signal: AbortSignal): Promise<void> {
    const { authentication, clock } = this.#options;
    if (clock.monotonicMs() < this.#unavailableUntilMs) {
      reply.abort();
      return;
    }
    const target = parseTarget(entry.path);
    const query = new URLSearchParams(entry.query);
    const isWatch = ['true', '1'].includes(query.get('watch') ?? '');
    const verb = target.kind === 'resource' ? verbOf(request.method ?? '', target, isWatch) : undefined;
    entry.verb = verb ?? '';
    if (target.kind === 'resource') {
      entry.resource = target.subresource === '' ? target.plural : `${target.plural}/${target.subresource}`;
    }
    const user = authentication.authenticate(request);
    entry.user = user?.name ?? '';
    const fault = this.#strike(entry, target, isWatch);
    const exchange = { request, reply, path: entry.path, query, target, verb, fault, signal };
    if (fault !== undefined && (await this.#preempted(exchange, fault))) return;
    if (user === undefined) throw new StatusError('Unauthorized', 'Unauthorized');
    const acting = impersonate(request, user, this.#options.authorization);
    entry.user = acting.name;
    if (target.kind === 'resource') await this.#serveResource({ ...exchange, user: acting }, target);
    else await this.#servePath({ ...exchange, user: acting }, target.path);
  }

  async #serveResource(exchange: Exchange, target: ResourceTarget): Promise<void> {
    const { authorization, types, resources } = this.#options;
    const { request, reply, user, verb, query, fault, signal } = exchange;
    if (verb === undefined) throw methodNotAllowed();
    const { group, namespace, plural, subresource } = target;
    const name = target.name || (verb === 'list' || verb === 'watch' ? selectedName(query) : '');
    // A namespace is itself the scope of what is asked about it.
    const scope = group === '' && plural === 'namespaces' && target.name !== '' ? target.name : namespace;
    const access = { user, verb, group, resource: plural, subresource, namespace: scope, name };
    const review = findReview(group, target.version, plural);
    const of = types.find(target);
    if (review === undefined) authorization.require(access);
    const contentType = mediaType(request.headers['content-type']);
    if (review !== undefined) return this.#serveReview(exchange, target, contentType);
    if (of === undefined) throw noSuchPath();
    const body = request.method === 'GET' || request.method === 'HEAD' ? Buffer.alloc(0) : await readBody(request);
    const { accept } = request.headers;
    await resources.handle({ verb, target, of, query, accept, contentType, body, reply, fault, signal });
  }

  async #serveReview(exchange: Exchange, target: ResourceTarget, contentType: string): Promise<void> {
    const { request, reply, user, verb, query } = exchange;
    const review = findReview(target.group, target.version, target.plural);
    if (review === undefined || verb !== 'create') throw methodNotAllowed();
    const { authorization } = this.#options;
    const access = {
      user,
      verb,
      group: review.group,
      resource: review.plural,
      subresource: '',
      namespace: '',
      name: '',
    };
    // What one may ask about oneself is open to everyone; about others it needs a permission.
    if (!review.kind.startsWith('Self')) authorization.require(access);
    choosePresentation(request.headers.accept, query);
    const body = await parseObject(await readBody(request), contentType, objectTypes);
    reply.json(201, JSON.stringify(reviewed(review, body, user, this.#options)));
  }

  async #servePath(exchange: Exchange, path: string): Promise<void> {
    const { authorization, paths } = this.#options;
    const { request, reply, user, query } = exchange;
    const method = request.method ?? 'GET';
    if (!authorization.allowsPath(user, path, method)) throw forbiddenPath(user, method, path);
    await paths.handle({ method, path, query, request, reply });
  }

  #log(request: IncomingMessage): LoggedRequest {
    const [path, query] = splitOnce(request.url ?? '/', '?');
    const { headers } = request;
    return this.#options.requestLog.add({
      atMs: this.#options.clock.monotonicMs(),
      method: request.method ?? '',
      path,
      query,
      userAgent: headers['user-agent'] ?? '',
      kubectlCommand: [headers['kubectl-command'] ?? ''].flat().join(' '),
      contentType: headers['content-type'] ?? '',
      hasCredentials: headers.authorization !== undefined,
      user: '',
      verb: '',
      resource: '',
      status: 0,
      durationMs: -1,
      fault: '',
    });
  }

  #strike(entry: LoggedRequest, target: RequestTarget, watch: boolean): FaultAction | undefined {
    const resource = target.kind === 'resource' ? target : undefined;
    // The way to take faults back must not itself be broken by one.
    if (entry.path.startsWith('/embedded/')) return undefined;
    const fault = this.#options.faults.strike({
      user: entry.user,
      userAgent: entry.userAgent,
      verb: entry.verb,
      group: resource?.group ?? '',
      resource: resource?.plural ?? '',
      subresource: resource?.subresource ?? '',
      namespace: resource?.namespace ?? '',
      name: resource?.name ?? '',
      watch,
    });
    entry.fault = fault?.type ?? '';
    return fault;
  }

  /** Does what a fault does before the request is handled; true if that is all the client gets. */
  async #preempted(exchange: Omit<Exchange, 'user'>, fault: FaultAction): Promise<boolean> {
    const { clock, store } = this.#options;
    const { reply, signal } = exchange;
    switch (fault.type) {
      case 'delay':
        await clock.sleep(fault.ms, { signal });
        return false;
      case 'status':
        throw new StatusError(fault.reason ?? '', fault.message ?? `injected: ${fault.code}`, {
          code: fault.code,
          ...(fault.retryAfter === undefined ? {} : { details: { retryAfterSeconds: fault.retryAfter } }),
        });
      case 'dropBefore':
        reply.abort();
        return true;
      case 'htmlBody':
        reply.text(fault.code, '<html><body><h1>Bad gateway</h1></body></html>', 'text/html');
        return true;
      case 'unavailable':
        this.#unavailableUntilMs = clock.monotonicMs() + fault.ms;
        reply.abort();
        return true;
      case 'compactNow':
        store.compact();
        return false;
      case 'dropAfter':
      case 'truncate':
      case 'throttleBytes':
        reply.fault = fault;
        return false;
      default:
        return false;
    }
  }
}

function splitOnce(text: string, by: string): [string, string] {
  const index = text.indexOf(by);
  return index === -1 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)];
}
