import { inspect } from 'node:util';
import { quotedForms } from './quoted-forms.ts';

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
   * Removes values from a text that somebody else wrote, such as the error of a driver that quotes its request, in all forms in which
   * they are usually quoted. Values are searched for in the original text, and overlapping ones are removed together, so nothing is
   * left of a value that begins with another one. A value of fewer than six characters stays: removing it would also remove ordinary
   * words and numbers.
   */
  static stripped(text: string, secrets: Iterable<SecretString>): string {
    const forms = new Set<string>();
    for (const secret of secrets) for (const form of secret.#forms()) if (form.length <= text.length) forms.add(form);
    let result = '';
    let at = 0;
    for (const [start, end] of mergedRanges([...forms].flatMap((form) => occurrences(text, form)))) {
      result += text.slice(at, start) + strippedText;
      at = end;
    }
    return result + text.slice(at);
  }

  #forms(): Iterable<string> {
    const characters = Array.from(new TextDecoder().decode(this.#bytes).trim()).length;
    if (characters < minStrippedLength) return [];
    return [...quotedForms(this.#bytes)].filter((form) => form.length >= minStrippedLength);
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

type Range = readonly [start: number, end: number];

function occurrences(text: string, form: string): Range[] {
  const found: Range[] = [];
  for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + 1)) found.push([at, at + form.length]);
  return found;
}

/** From left to right, the longest first where several begin; those that overlap are merged. */
function mergedRanges(ranges: readonly Range[]): Range[] {
  const merged: [number, number][] = [];
  for (const [start, end] of ranges.toSorted((one, other) => one[0] - other[0] || other[1] - one[1])) {
    const last = merged.at(-1);
    if (last !== undefined && start < last[1]) last[1] = Math.max(last[1], end);
    else merged.push([start, end]);
  }
  return merged;
}
