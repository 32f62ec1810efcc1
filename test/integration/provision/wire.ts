import { subscribe, unsubscribe } from 'node:diagnostics_channel';

/** One request as it went over the wire. */
export interface SentRequest {
  method: string;
  path: string;
  contentType: string | undefined;
  /** The parsed JSON body. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- bodies are inspected field by field
  body: any;
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

  [Symbol.dispose](): void {
    unsubscribe('undici:request:create', this.#created);
    unsubscribe('undici:request:trailers', this.#answered);
    unsubscribe('undici:request:error', this.#answered);
  }

  readonly #created = (message: unknown): void => {
    const { request } = message as { request: UndiciRequest };
    if (request.origin !== this.#origin) return;
    const at = request.headers.indexOf('content-type');
    this.requests.push({
      method: request.method,
      path: request.path,
      contentType: at === -1 ? undefined : request.headers[at + 1],
      body: request.body === null ? undefined : JSON.parse(request.body.toString()),
    });
  };

  readonly #answered = (message: unknown): void => {
    if ((message as { request: UndiciRequest }).request.origin === this.#origin) this.#onAnswer();
  };
}
