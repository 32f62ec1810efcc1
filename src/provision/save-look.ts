import type { Clock } from '../base/clock.ts';
import { type Moment, momentOf, passedMs, type Permit } from '../base/permit.ts';

/** What was read live counts for so long, in milliseconds: a request may wait for its turn, a connection, or a paused process. */
const maxAgeMs = 10_000;

/** A live look before a request that must be young when the request is sent. */
export class SaveLook implements Permit {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
  readonly #look: () => Promise<void>;
  #beganAt: Moment | undefined;

  constructor({ clock, look }: { clock: Pick<Clock, 'monotonicMs' | 'wallMs'>; look: () => Promise<void> }) {
    this.#clock = clock;
    this.#look = look;
  }

  get isValid(): boolean {
    return this.#beganAt !== undefined && passedMs(this.#beganAt, momentOf(this.#clock)) <= maxAgeMs;
  }

  /** Looks again. @throws what the look throws. */
  async renewed(): Promise<void> {
    const beganAt = momentOf(this.#clock);
    await this.#look();
    this.#beganAt = beganAt;
  }
}
