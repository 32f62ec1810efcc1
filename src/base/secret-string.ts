import { inspect } from 'node:util';

/** What is shown instead of a secret value (the CSI libraries' own mark). */
export const strippedText = '***stripped***';

const minStrippedLength = 6;

/** A secret value that is not UTF-8 text: it cannot travel in a protobuf string and must not be changed to fit. */
export class SecretEncodingError extends Error {
  override readonly name = 'SecretEncodingError';
}

/**
 * A secret value. JSON, `util.inspect`, logs, templates and concatenation show `***stripped***`; only `reveal` gives
 * the value away (CSI spec, "Secrets Requirements").
 */
export class SecretString {
  readonly #bytes: Uint8Array;

  private constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** A secret from its raw bytes, such as one decoded entry of a Secret's `data`. */
  static fromBytes(bytes: Uint8Array): SecretString {
    return new SecretString(Uint8Array.from(bytes));
  }

  static fromText(text: string): SecretString {
    return new SecretString(new TextEncoder().encode(text));
  }

  /**
   * The value itself. Call it where the value leaves the process and nowhere else.
   *
   * @throws {SecretEncodingError} when the bytes are not UTF-8.
   */
  reveal(): string {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.#bytes);
    } catch {
      throw new SecretEncodingError('string field contains invalid UTF-8');
    }
  }

  /**
   * Removes the value from a text that somebody else wrote, such as the error of a driver that quotes its request. A value of fewer
   * than six characters stays: removing it would also remove ordinary words and numbers.
   */
  strippedFrom(text: string): string {
    const value = new TextDecoder().decode(this.#bytes).trim();
    return value.length < minStrippedLength ? text : text.replaceAll(value, strippedText);
  }

  toString(): string {
    return strippedText;
  }

  toJSON(): string {
    return strippedText;
  }

  [Symbol.toPrimitive](): string {
    return strippedText;
  }

  [inspect.custom](): string {
    return strippedText;
  }
}
