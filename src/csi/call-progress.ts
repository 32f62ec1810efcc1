import type { Clock, Timer } from '../base/clock.ts';
import type { BackendProgress } from '../provision/recoverable.ts';

/** Pause before a check, in milliseconds: until then another call may get a response. It doubles with each check that gets none. */
const checkPauses = { firstMs: 100, maxMs: 30_000 } as const;

export interface CallProgressOptions {
  clock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** Makes a call without effects. Must not reject; its result does not matter. */
  check: () => Promise<unknown>;
}

/**
 * Which calls the driver has read. The calls of a connection are read in order, and so is the reset of one that is given up: a
 * response to a call that was sent later proves that the one given up was read, or never will be. Where no other call gives that proof, a
 * call without effects is made for it. Not covered: after a GOAWAY the response may come over a new connection, which proves nothing about
 * the old one.
 */
export class CallProgress implements BackendProgress, Disposable {
  readonly #options: CallProgressOptions;
  readonly #listeners = new Set<(untilMs: number) => void>();
  /** When the last call was given up; undefined: none was. */
  #givenUpAtMs: number | undefined;
  /** When the latest call to which the driver has responded was sent. */
  #readUntilMs = -Infinity;
  #timer: Timer | undefined;
  #isChecking = false;
  #pauseMs: number = checkPauses.firstMs;
  #isDisposed = false;

  constructor(options: CallProgressOptions) {
    this.#options = options;
  }

  get isBehind(): boolean {
    return this.#isBehind();
  }

  onProgress(listener: (untilMs: number) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** The driver has responded, with whatever status, to a call that was sent at this monotonic time, in milliseconds. */
  responded(sentAtMs: number): void {
    if (sentAtMs <= this.#readUntilMs) return;
    const wasBehind = this.#isBehind();
    this.#readUntilMs = sentAtMs;
    if (!wasBehind) return;
    this.#pauseMs = checkPauses.firstMs;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isBehind()) this.#checkSoon();
    const untilMs = this.#isBehind() ? sentAtMs : Infinity;
    for (const listener of [...this.#listeners]) listener(untilMs);
  }

  /** A call that creates something was given up, without a response. */
  givenUp(): void {
    this.#givenUpAtMs = this.#options.clock.monotonicMs();
    this.#checkSoon();
  }

  /** The connection is gone: what the driver has not read of it is lost. */
  disconnected(): void {
    this.responded(this.#options.clock.monotonicMs());
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#timer?.cancel();
  }

  #isBehind(): boolean {
    return this.#givenUpAtMs !== undefined && this.#givenUpAtMs >= this.#readUntilMs;
  }

  #checkSoon(): void {
    if (this.#isChecking || this.#isDisposed) return;
    this.#timer ??= this.#options.clock.after(this.#pauseMs, () => void this.#check());
  }

  async #check(): Promise<void> {
    this.#timer = undefined;
    if (!this.#isBehind()) return;
    this.#isChecking = true;
    this.#pauseMs = Math.min(2 * this.#pauseMs, checkPauses.maxMs);
    await this.#options.check();
    this.#isChecking = false;
    if (this.#isBehind()) this.#checkSoon();
  }
}
