import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ObjectMeta, ObjectReference } from '../../../src/kube/kube-object.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';

/** The fields of bodies that tests look at; which of them are there depends on the request. */
export interface SentBody {
  metadata: ObjectMeta;
  spec: PersistentVolume['spec'];
  type: string;
  reason: string;
  message: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  involvedObject: ObjectReference;
  reportingComponent: string;
}

/** One request as it went over the wire. */
export interface SentRequest {
  method: string;
  path: string;
  contentType: string | undefined;
  bodyText: string;
  /** The parsed JSON; an empty object where there was no body. */
  body: SentBody;
}

interface UndiciRequest {
  origin: string;
  method: string;
  path: string;
  headers: string[];
  body: Buffer | null;
}

/** Listens to what this process sends to one origin; ends when disposed. */
export class Wire implements Disposable {
  readonly requests: SentRequest[] = [];
  readonly #origin: string;
  readonly #onAnswer: () => void;

  constructor(options: { origin: string; onAnswer: () => void }) {
    this.#origin = options.origin;
    this.#onAnswer = options.onAnswer;
    subscribe('undici:request:create', this.#created);
    subscribe('undici:request:trailers', this.#answered);
    subscribe('undici:request:error', this.#answered);
  }

  /** Requests other than reads, events left out. */
  get writes(): SentRequest[] {
    return this.requests.filter(({ method, path }) => method !== 'GET' && !path.includes('/events'));
  }

  /** @throws {Error} unless there was exactly one write. */
  get onlyWrite(): SentRequest {
    const [write, ...more] = this.writes;
    if (write === undefined || more.length > 0) throw new Error(`there were ${this.writes.length} writes`);
    return write;
  }

  [Symbol.dispose](): void {
    unsubscribe('undici:request:create', this.#created);
    unsubscribe('undici:request:trailers', this.#answered);
    unsubscribe('undici:request:error', this.#answered);
  }

  readonly #created = (message: unknown): void => {
    const { request } = message as { request: UndiciRequest };
    if (request.origin !== this.#origin) return;
    const bodyText = request.body?.toString() ?? '';
    const at = request.headers.indexOf('content-type');
    this.requests.push({
      method: request.method,
      path: request.path,
      contentType: at === -1 ? undefined : request.headers[at + 1],
      bodyText,
      body: JSON.parse(bodyText || '{}') as SentBody,
    });
  };

  readonly #answered = (message: unknown): void => {
    const { request } = message as { request: UndiciRequest };
    if (request.origin === this.#origin) this.#onAnswer();
  };
}
