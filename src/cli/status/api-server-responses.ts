import type { Clock } from '../../base/clock.ts';

/** A single failure is no outage: requests are sent again, over other connections. In milliseconds. */
const patienceMs = 10_000;
/** Failures of one moment may have been aborted together: the last one must have come so much later. In milliseconds. */
const spanMs = 5000;
/** So long after the last failure nobody knows any more: what is away for long is asked again and again. In milliseconds. */
const memoryMs = 120_000;

/** Of what stands before the API server, or of one that is overloaded. Any other code is its response. */
const noResponses: ReadonlySet<string> = new Set(['<error>', '502', '503', '504']);

/** Whether the API server responds at all, from the requests that are sent anyway. */
export class ApiServerResponses {
  readonly #clock: Clock;
  /** The first and the last failure since the last response, in monotonic milliseconds. */
  #failures: { readonly firstMs: number; readonly lastMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param code - as of a `RequestObservation`. */
  record(code: string): void {
    const nowMs = this.#clock.monotonicMs();
    this.#failures = noResponses.has(code) ? { firstMs: this.#failures?.firstMs ?? nowMs, lastMs: nowMs } : undefined;
  }

  /** Since when no request has had a response, in milliseconds since the Unix epoch; undefined: the last one was, or nobody knows. */
  get failingSinceMs(): number | undefined {
    if (this.#failures === undefined) return undefined;
    const { firstMs, lastMs } = this.#failures;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - firstMs < patienceMs || lastMs - firstMs < spanMs || nowMs - lastMs > memoryMs) return undefined;
    return this.#clock.wallMs() - (nowMs - firstMs);
  }
}
