import type { Clock } from '../base/clock.ts';
import { type Moment, momentOf, passedMs, type Permit } from '../base/permit.ts';

/** For how long what was read live counts, in milliseconds: a request may wait for its turn, a connection, or a paused process. */
const maxAgeMs = 10_000;

/** A live read before a request, which must be recent when the request is sent. */
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

  /** Reads again. @throws what the read throws. */
  async renewed(): Promise<void> {
    const beganAt = momentOf(this.#clock);
    await this.#look();
    this.#beganAt = beganAt;
  }
}
