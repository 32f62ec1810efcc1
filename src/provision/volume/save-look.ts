import type { Clock } from '../../base/clock.ts';
import { type Moment, momentOf, passedMs, type Permit } from '../../base/permit.ts';

/** For how long what was read live counts, in milliseconds: the request may wait for its turn or a connection, or the process may be paused. */
const maxAgeMs = 10_000;

/** A live read before a request, which must be recent when the request is sent. */
export class SaveLook implements Permit {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
  readonly #look: () => Promise<void>;
  #beganAt: Moment | undefined;

  /** @param options.beganAt - when a read that has succeeded already began. Default: there was none yet. */
  constructor(options: {
    clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
    look: () => Promise<void>;
    beganAt?: Moment | undefined;
  }) {
    this.#clock = options.clock;
    this.#look = options.look;
    this.#beganAt = options.beganAt;
  }

  get isValid(): boolean {
    return this.#beganAt !== undefined && passedMs(this.#beganAt, momentOf(this.#clock)) <= maxAgeMs;
  }

  /** Reads again. @throws what the read throws. */
  async renewed(): Promise<void> {
    const beganAt = momentOf(this.#clock);
    await this.#look();
    this.#beganAt = beganAt;
  }
}
