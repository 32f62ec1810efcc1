/** One request as the server saw it. */
export interface LoggedRequest {
  /** Grows by one with each request, those of in-process controllers included. */
  readonly id: number;
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  readonly userAgent: string;
  /** Header `Kubectl-Command`; empty if absent. */
  readonly kubectlCommand: string;
  readonly contentType: string;
  /** Whether an `Authorization` header was sent; its value is never kept. */
  readonly hasCredentials: boolean;
  user: string;
  /** API verb; empty for requests that are for no resource. */
  verb: string;
  /** Plural of the resource, with `/<subresource>` if there is one; empty for other paths. */
  resource: string;
  /** HTTP status; 0 without a response yet, or if the connection was aborted before a response. */
  status: number;
  /** Until the last byte of the response; -1 while it is open. */
  durationMs: number;
  /** Type of the fault applied to it. */
  fault: string;
}

/** Which requests a test wants to see; each given field must be equal, `path` may be a pattern. */
export type RequestFilter = Partial<
  Pick<LoggedRequest, 'method' | 'user' | 'verb' | 'resource' | 'status' | 'fault' | 'kubectlCommand'>
> & { path?: string | RegExp };

/** The latest requests, kept in memory for tests. */
export class RequestLog {
  readonly #limit: number;
  #entries: LoggedRequest[] = [];
  #nextId = 1;

  /** @param options.limit - how many requests are kept. */
  constructor(options: { limit: number }) {
    this.#limit = options.limit;
  }

  /** Adds a request; the caller fills in what becomes known later. */
  add(request: Omit<LoggedRequest, 'id'>): LoggedRequest {
    const entry: LoggedRequest = { id: this.#nextId++, ...request };
    this.#entries.push(entry);
    if (this.#entries.length > this.#limit * 2) this.#entries = this.#entries.slice(-this.#limit);
    return entry;
  }

  /** The kept requests that fit, oldest first. */
  entries(filter: RequestFilter = {}): LoggedRequest[] {
    const { path, ...equal } = filter;
    return this.#entries.slice(-this.#limit).filter((entry) => {
      if (typeof path === 'string' && entry.path !== path) return false;
      if (path instanceof RegExp && !path.test(entry.path)) return false;
      return Object.entries(equal).every(([field, value]) => entry[field as keyof LoggedRequest] === value);
    });
  }

  /** How many requests were made so far, dropped ones included. */
  get total(): number {
    return this.#nextId - 1;
  }

  clear(): void {
    this.#entries = [];
  }
}
