import { shortValue } from './short-value.ts';
import { goQuote } from './go-quote.ts';

/** A text that one of Go's `strconv` functions rejects; `message` is Go's, `outOfRange` distinguishes the two reasons. */
export class StrconvError extends Error {
  override readonly name = 'StrconvError';
  readonly outOfRange: boolean;

  constructor(operation: string, text: string, outOfRange = false) {
    super(
      `strconv.${operation}: parsing ${goQuote(shortValue(text))}: ${outOfRange ? 'value out of range' : 'invalid syntax'}`,
    );
    this.outOfRange = outOfRange;
  }
}

const trueWords = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const falseWords = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/**
 * A boolean word of Go (`strconv.ParseBool`), as class parameters and environment variables of Kubernetes programs have
 * it: `1`, `t`, `T`, `true`, `TRUE`, `True`, and `0`, `f`, `F`, `false`, `FALSE`, `False`.
 *
 * @throws {StrconvError} with Go's own message for any other text, also an empty one.
 */
export function parseGoBool(text: string): boolean {
  if (trueWords.has(text)) return true;
  if (falseWords.has(text)) return false;
  throw new StrconvError('ParseBool', text);
}

/** Whether `parseGoBool` reads the text. */
export function isGoBool(text: string): boolean {
  return trueWords.has(text) || falseWords.has(text);
}
