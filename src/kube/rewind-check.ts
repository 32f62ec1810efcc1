import { joinSignals, type JoinedSignal } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { RewoundError } from './reflector-failures.ts';

/** Silence of a watch after which the versions are compared, in milliseconds: a server sends a bookmark each minute. */
const silentMs = 75_000;

/**
 * Guards a watch that was opened after an interruption, from its start to its first event or bookmark. A watch from a version
 * that the server has not reached stays open and silent, so that a silent one is checked.
 */
export class RewindCheck implements Disposable {
  readonly #rewound = new AbortController();
  readonly #joined: JoinedSignal;
  readonly #ended = new AbortController();

  /** @param options.compare - asks the server for its version; its `RewoundError` aborts the watch, other failures are retried. */
  constructor(options: { clock: Clock; compare: (signal: AbortSignal) => Promise<void>; signal: AbortSignal }) {
    const { clock, compare, signal } = options;
    this.#joined = joinSignals([signal, this.#rewound.signal], { clock });
    void this.#run(options.clock, compare).catch(() => undefined); // it has ended
  }

  /** For the watch. Its reason is the `RewoundError` where the server has gone back. */
  get signal(): AbortSignal {
    return this.#joined.signal;
  }

  /** The watch has had an event or bookmark: nothing is compared any more. */
  confirm(): void {
    this.#ended.abort();
  }

  async #run(clock: Clock, compare: (signal: AbortSignal) => Promise<void>): Promise<void> {
    using signal = joinSignals([this.#joined.signal, this.#ended.signal], { clock });
    for (;;) {
      await clock.sleep(silentMs, { signal: signal.signal });
      try {
        await compare(signal.signal);
        return;
      } catch (error) {
        signal.signal.throwIfAborted();
        if (error instanceof RewoundError) this.#rewound.abort(error);
      }
    }
  }

  [Symbol.dispose](): void {
    this.confirm();
    this.#joined[Symbol.dispose]();
  }
}
