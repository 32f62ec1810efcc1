import { joinSignals, type JoinedSignal } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { RewoundError } from './reflector-failures.ts';

/**
 * Silence of the watches after an interruption after which the versions are compared, in milliseconds: a server sends a
 * bookmark each minute. Less than the silence that ends a watch.
 */
const silentMs = 70_000;

/**
 * Guards a watch that was opened after an interruption, from its start to its first event or bookmark. A watch from a version
 * that the server has not reached stays open and silent, so that a silent one is checked. The silence of several in a row
 * counts as one: a proxy may end each of them before its first bookmark.
 */
export class RewindCheck implements Disposable {
  readonly #rewound = new AbortController();
  readonly #joined: JoinedSignal;
  readonly #ended = new AbortController();
  readonly #clock: Clock;
  #compareAtMs: number;
  #isSettled = false;

  /**
   * @param options.afterMs - silence until the versions are compared, in milliseconds: `leftMs` of the watch before. Default 70,000.
   * @param options.compare - asks the server for its version; its `RewoundError` aborts the watch, other failures are retried.
   */
  constructor(options: {
    clock: Clock;
    afterMs?: number | undefined;
    compare: (signal: AbortSignal) => Promise<void>;
    signal: AbortSignal;
  }) {
    const { clock, afterMs = silentMs, compare, signal } = options;
    this.#clock = clock;
    this.#compareAtMs = clock.monotonicMs() + afterMs;
    this.#joined = joinSignals([signal, this.#rewound.signal], { clock });
    void this.#run(compare).catch(() => undefined); // it has ended
  }

  /** For the watch. Its reason is the `RewoundError` where the server has gone back. */
  get signal(): AbortSignal {
    return this.#joined.signal;
  }

  /** Milliseconds of silence until the versions are compared; all of them again once the server is known to have the version. */
  get leftMs(): number {
    return this.#isSettled ? silentMs : Math.max(this.#compareAtMs - this.#clock.monotonicMs(), 0);
  }

  /** The watch has had an event or bookmark: nothing is compared any more. */
  confirm(): void {
    this.#isSettled = true;
    this.#ended.abort();
  }

  async #run(compare: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const clock = this.#clock;
    using signal = joinSignals([this.#joined.signal, this.#ended.signal], { clock });
    for (;;) {
      await clock.sleep(this.leftMs, { signal: signal.signal });
      try {
        await compare(signal.signal);
        this.#isSettled = true;
        return;
      } catch (error) {
        signal.signal.throwIfAborted();
        if (error instanceof RewoundError) this.#rewound.abort(error);
        this.#compareAtMs = clock.monotonicMs() + silentMs;
      }
    }
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#joined[Symbol.dispose]();
  }
}
