import type { IncomingMessage } from 'node:http';
import { type Faults, parseFaultRule } from './faults.ts';
import { noSuchPath } from './status-error.ts';
import type { Reply } from './reply.ts';
import { mediaType, parseObject, readBody } from './request-body.ts';
import type { RequestLog } from './request-log.ts';
import { methodNotAllowed } from './resource-requests.ts';

/**
 * What tests in other processes control, under `/embedded`: `POST faults` adds a rule and returns its id,
 * `DELETE faults[/<id>]` takes rules back, `GET requests` returns the request log and `DELETE requests`
 * empties it.
 */
export class EmbeddedRequests {
  readonly #faults: Faults;
  readonly #requestLog: RequestLog;

  constructor(options: { faults: Faults; requestLog: RequestLog }) {
    this.#faults = options.faults;
    this.#requestLog = options.requestLog;
  }

  /** @throws {StatusError} `NotFound`, `MethodNotAllowed`, `BadRequest` for a rule that makes no sense. */
  async handle(exchange: PathRequest): Promise<void> {
    const [, , what, id, ...more] = exchange.path.split('/');
    if (more.length > 0) throw noSuchPath();
    if (what === 'faults') return this.#controlFaults(exchange, id);
    if (what !== 'requests' || id !== undefined) throw noSuchPath();
    const { method, reply } = exchange;
    if (method === 'GET') {
      reply.json(200, JSON.stringify({ items: this.#requestLog.entries() }));
      return;
    }
    if (method !== 'DELETE') throw methodNotAllowed();
    this.#requestLog.clear();
    reply.json(200, '{}');
  }

  async #controlFaults({ method, request, reply }: PathRequest, id: string | undefined): Promise<void> {
    if (method === 'POST' && id === undefined) {
      const contentType = mediaType(request.headers['content-type']);
      const rule = parseFaultRule(await parseObject(await readBody(request), contentType, ['application/json']));
      reply.json(201, JSON.stringify({ id: this.#faults.add(rule).id }));
      return;
    }
    if (method !== 'DELETE') throw methodNotAllowed();
    if (id === undefined) this.#faults.clear();
    else this.#faults.remove(Number(id));
    reply.json(200, '{}');
  }
}

/** A request for something that is no resource. */
export interface PathRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly reply: Reply;
}
