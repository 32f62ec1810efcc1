import type { RateLimiter } from '../../../src/kube/rate-limiter.ts';

/** How a turn of a key ended: well (its failures are forgotten), or with a retry after so many milliseconds. */
export type TurnEnd = { end: 'done' } | { end: 'retry'; delayMs: number };

/** Passes everything on to a limiter and keeps what was asked, which tells how each turn ended. */
export class RecordedLimiter implements RateLimiter {
  readonly #limiter: RateLimiter;
  readonly #turns = new Map<string, TurnEnd[]>();
  readonly #onTurn: () => void;

  constructor(limiter: RateLimiter, onTurn: () => void) {
    this.#limiter = limiter;
    this.#onTurn = onTurn;
  }

  when(key: string): number {
    const delayMs = this.#limiter.when(key);
    this.#note(key, { end: 'retry', delayMs });
    return delayMs;
  }

  forget(key: string): void {
    this.#limiter.forget(key);
    this.#note(key, { end: 'done' });
  }

  failures(key: string): number {
    return this.#limiter.failures(key);
  }

  /** The turns of a key so far; a turn after which the controller gave up is not among them. */
  turns(key: string): readonly TurnEnd[] {
    return this.#turns.get(key) ?? [];
  }

  /** Pauses that were given to a key. */
  delays(key: string): number[] {
    return this.turns(key).flatMap((turn) => (turn.end === 'retry' ? [turn.delayMs] : []));
  }

  #note(key: string, turn: TurnEnd): void {
    const turns = this.#turns.get(key) ?? [];
    turns.push(turn);
    this.#turns.set(key, turns);
    this.#onTurn();
  }
}
