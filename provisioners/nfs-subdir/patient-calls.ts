/** Waits for the export, but not for ever: a call that hangs there is abandoned, since nothing can end it. */
import { type Clock, untilAborted } from '../../src/index.ts';
import { ShareError } from './share-guard.ts';

/** The export does not respond; what was under way may still happen. */
export class SilentShareError extends ShareError {
  override readonly name: string = 'SilentShareError';
}

/** How long a claim waits for the export before an event says so, in milliseconds. */
export const patienceMs = 15_000;

export class PatientCalls {
  readonly #clock: Clock;
  readonly #mountPoint: string;
  #silence = new AbortController();
  #isSilent = false;
  #abandoned = 0;

  constructor(options: { clock: Clock; mountPoint: string }) {
    this.#clock = options.clock;
    this.#mountPoint = options.mountPoint;
  }

  /** How many calls were abandoned and have not ended: while there are any, the process cannot end by itself. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** The export was found silent. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** What the probe found: while the export is silent no call is started there, and those under way are abandoned. */
  set isSilent(isSilent: boolean) {
    if (isSilent && !this.#isSilent) this.#silence.abort(this.#error());
    if (!isSilent && this.#isSilent) this.#silence = new AbortController();
    this.#isSilent = isSilent;
  }

  /**
   * Starts the call, and waits until it ends, the export is found silent, or the signal aborts.
   *
   * @param options.isShort - also gives up after `patienceMs`: for calls that are short wherever the export responds.
   * @throws {SilentShareError} when the export does not respond; the signal's reason; what the call throws.
   */
  async run<T>(
    call: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
    { isShort = false }: { isShort?: boolean } = {},
  ): Promise<T> {
    const late = new AbortController();
    const timer = isShort ? this.#clock.after(patienceMs, () => late.abort(this.#error())) : undefined;
    const until = AbortSignal.any([signal, this.#silence.signal, late.signal]);
    until.throwIfAborted();
    let isOver = false;
    const calling = call(until).finally(() => {
      if (isOver) this.#abandoned--;
      isOver = true;
    });
    try {
      return await untilAborted(calling, until);
    } finally {
      timer?.cancel();
      // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- the call sets it
      if (!isOver) this.#abandoned++;
      isOver = true;
    }
  }

  #error(): SilentShareError {
    return new SilentShareError(`the export at ${this.#mountPoint} does not respond`);
  }
}
