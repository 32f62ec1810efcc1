import type { Clock } from '../../base/clock.ts';
import { shortValue } from '../../base/short-value.ts';

/** Why the last attempt for a claim ended without a volume. */
export interface LastError {
  /** As in the events, truncated at 1,000 characters. */
  readonly message: string;
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
}

const maxErrors = 20_000;
const maxMessageLength = 1000;

/** The last error of each claim that waits, by UID; of too many claims those that failed last. */
export class LastErrors {
  readonly #clock: Clock;
  readonly #errors = new Map<string, LastError>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(uid: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#errors.delete(uid);
    this.#errors.set(uid, { message: shortValue(message, maxMessageLength), atMs: this.#clock.wallMs() });
    if (this.#errors.size <= maxErrors) return;
    for (const oldest of this.#errors.keys()) {
      this.#errors.delete(oldest);
      return;
    }
  }

  get(uid: string): LastError | undefined {
    return this.#errors.get(uid);
  }

  delete(uid: string): void {
    this.#errors.delete(uid);
  }
}
