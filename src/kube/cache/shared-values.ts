/** The longest value that is shared, in characters: users could fill the table with longer ones. */
const maxSharedChars = 512;

/**
 * Shares equal values: thousands of cached objects name the same namespaces, classes and drivers, request the
 * same sizes and have the same finalizers. Only for values that repeat; unique ones would only fill the table.
 */
export class SharedValues {
  readonly #strings = new Map<string, string>();
  readonly #values = new Map<string, unknown>();
  readonly #limit: number;

  /** @param limit - max strings, and max values, kept; further ones pass through unshared. Default 10,000. */
  constructor(limit = 10_000) {
    this.#limit = limit;
  }

  /** The shared copy of a string. */
  string<T extends string | undefined>(text: T): T {
    if (text === undefined || text.length > maxSharedChars) return text;
    const known = this.#strings.get(text);
    if (known !== undefined) return known as T;
    if (this.#strings.size < this.#limit) this.#strings.set(text, text);
    return text;
  }

  /** The shared, frozen copy of a small plain value: a list of finalizers, a phase, a size. */
  value<T extends object | undefined>(value: T): T {
    if (value === undefined) return value;
    const key = JSON.stringify(value);
    const known = this.#values.get(key);
    if (known !== undefined) return known as T;
    const copy = deepFreeze(JSON.parse(key) as T);
    if (this.#values.size < this.#limit && key.length <= maxSharedChars) this.#values.set(key, copy);
    return copy;
  }
}

/** Makes a plain value and all its parts unchangeable. */
export function deepFreeze<V>(value: V): V {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
