/** Requests of one kind, such as those that list claims. */
export interface RequestKind {
  readonly name: string;
  /** How many requests of the kind are sent in each turn while other kinds wait. */
  readonly inRow: number;
}

interface Waiting {
  readonly kind: RequestKind;
  readonly requests: Set<() => void>;
  /** How many were sent since the turn of the kind began. */
  sent: number;
}

/**
 * A queue of requests in which kinds take turns: a request waits for few others of each kind, however many of one kind wait.
 * Requests of one kind are taken in order of arrival.
 */
export class RequestTurns {
  /** By name of the kind, in the order of their turns. */
  readonly #kinds = new Map<string, Waiting>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(request: () => void, kind: RequestKind): void {
    const waiting = this.#kinds.get(kind.name) ?? { kind, requests: new Set(), sent: 0 };
    this.#kinds.set(kind.name, waiting);
    waiting.requests.add(request);
    this.#size++;
  }

  /** Removes a request that no longer waits. Safe to repeat. */
  remove(request: () => void, { name }: RequestKind): void {
    const waiting = this.#kinds.get(name);
    if (waiting?.requests.delete(request) !== true) return;
    this.#size--;
    if (waiting.requests.size === 0) this.#kinds.delete(name);
  }

  /** Removes the next request and returns it; undefined if none waits. */
  take(): (() => void) | undefined {
    for (const waiting of this.#kinds.values()) {
      for (const request of waiting.requests) {
        this.remove(request, waiting.kind);
        this.#endTurn(waiting);
        return request;
      }
    }
    return undefined;
  }

  /** Puts the kind behind all others, once its turn is over. */
  #endTurn(waiting: Waiting): void {
    const { name, inRow } = waiting.kind;
    if (++waiting.sent < inRow || !this.#kinds.delete(name)) return;
    waiting.sent = 0;
    this.#kinds.set(name, waiting);
  }
}
