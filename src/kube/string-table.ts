/**
 * Shares equal strings: thousands of cached objects name the same namespaces, classes and drivers (KC-13.4). Only for
 * values that repeat; unique ones would only fill the table.
 */
export class StringTable {
  readonly #strings = new Map<string, string>();
  readonly #limit: number;

  /** @param limit - strings kept at most; further ones pass through unshared. Default 10,000. */
  constructor(limit = 10_000) {
    this.#limit = limit;
  }

  /** The shared copy of `text`. */
  share(text: string): string {
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    if (this.#strings.size < this.#limit) this.#strings.set(text, text);
    return text;
  }
}
