import type { Clock, Timer } from '../../base/clock.ts';
import { TransportError } from '../client/api-error.ts';

/** Aborts once nothing has come for too long while something was waited for. */
export class Silence {
  readonly #clock: Clock;
  readonly #maxMs: number | undefined;
  readonly #what: string;
  readonly #controller = new AbortController();
  #timer: Timer | undefined;

  /**
   * @param options.maxMs - in milliseconds; undefined: never.
   * @param options.what - what is waited for, in the error message.
   */
  constructor(options: { clock: Clock; maxMs: number | undefined; what: string }) {
    this.#clock = options.clock;
    this.#maxMs = options.maxMs;
    this.#what = options.what;
  }

  /** Its reason is a `TransportError` with code `TIMEOUT`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something is waited for from now on. */
  begin(): void {
    this.end();
    const maxMs = this.#maxMs;
    if (maxMs === undefined) return;
    const message = `no byte of ${this.#what} for ${maxMs} ms`;
    this.#timer = this.#clock.after(maxMs, () =>
      this.#controller.abort(new TransportError(message, { code: 'TIMEOUT' })),
    );
  }

  /** It came, or nothing is waited for any more. */
  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** The chunks of a body, each of which is waited for only while somebody reads. */
  async *guarded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      this.begin();
      for await (const chunk of body) {
        this.end();
        yield chunk;
        this.begin();
      }
    } finally {
      this.end();
    }
  }
}
