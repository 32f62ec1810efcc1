/** Random numbers that a seed repeats. Each part of a run draws from a stream of its own, whatever the others draw. */
export class Random {
  readonly #path: string;
  #state: number;

  constructor(seed: string) {
    this.#path = seed;
    this.#state = hash(seed);
  }

  /** The stream of that name, always from its beginning. */
  stream(name: string): Random {
    return new Random(`${this.#path}/${name}`);
  }

  /** From 0 to below 1 (the generator mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** From `low` to below `high`. */
  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** True in that share of the cases, from 0 to 1. */
  chance(share: number): boolean {
    return this.next() < share;
  }

  /** @throws {RangeError} when there is nothing to pick. */
  pick<T>(list: readonly T[]): T {
    const index = Math.floor(this.next() * list.length);
    if (list.length === 0) throw new RangeError('nothing to pick from');
    return list[index] as T;
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}
