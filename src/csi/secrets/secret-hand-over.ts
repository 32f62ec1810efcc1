import type { Clock } from '../../base/clock.ts';
import type { SecretString } from '../../base/secret-string.ts';

/** How long secrets may be on their way, in milliseconds: after that they are read again, for they may have been rotated. */
const validMs = 2_000;

type Secrets = Record<string, SecretString>;

/**
 * Secrets on their way from one step of an attempt to the next, in this process only. They are bound to an object and
 * go with it, or when they are taken.
 */
export class SecretHandOver {
  readonly #clock: Clock;
  readonly #given = new WeakMap<object, { secrets: Secrets; atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  give(to: object, secrets: Secrets): void {
    this.#given.set(to, { secrets, atMs: this.#clock.monotonicMs() });
  }

  /** @returns nothing when none were given, when they were taken already or have become old. */
  take(by: object): Secrets | undefined {
    const given = this.#given.get(by);
    this.#given.delete(by);
    return given !== undefined && this.#clock.monotonicMs() - given.atMs <= validMs ? given.secrets : undefined;
  }
}
