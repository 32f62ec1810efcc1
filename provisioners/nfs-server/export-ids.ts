/**
 * Numbers of exports or of quota projects. One that was given back is given again only when all others were used once: a
 * client that still has handles of the old volume would otherwise meet another one under the same number.
 */
export class IdPool {
  readonly #taken = new Set<number>();
  readonly #max: number;
  readonly #isReserved: (id: number) => boolean;
  #next = 1;

  /** @param options.isReserved - whether a number may not be given, now or ever. Default: none. */
  constructor({ max, isReserved = () => false }: { max: number; isReserved?: (id: number) => boolean }) {
    this.#max = max;
    this.#isReserved = isReserved;
  }

  /** The number is in use. Safe to repeat. */
  keep(id: number): void {
    this.#taken.add(id);
  }

  /** The lowest number that was never given, else the lowest free one; undefined when all are in use. */
  take(): number | undefined {
    while (!this.#isFree(this.#next) && this.#next <= this.#max) this.#next += 1;
    const id = this.#next <= this.#max ? this.#next++ : this.#lowestFree();
    if (id !== undefined) this.#taken.add(id);
    return id;
  }

  /** The number is free again. Safe to repeat. */
  release(id: number): void {
    this.#taken.delete(id);
  }

  #isFree(id: number): boolean {
    return !this.#taken.has(id) && !this.#isReserved(id);
  }

  #lowestFree(): number | undefined {
    for (let id = 1; id <= this.#max; id += 1) if (this.#isFree(id)) return id;
    return undefined;
  }
}
