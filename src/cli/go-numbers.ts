import { StrconvError } from '../base/go-bool.ts';

/** A whole number with Go's prefixes; an underscore only between digits, or between prefix and digits. */
const prefixedInteger =
  /^(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0(?:_?[0-7])+|0|[1-9](?:_?[0-9])*)$/;

/**
 * A signed 64-bit integer: decimal, `0x`, `0b`, `0o` or a leading `0` for octal. Beyond 2^53 the result is rounded.
 *
 * @throws {StrconvError}
 */
export function parseGoInt(text: string): number {
  const negative = text.startsWith('-');
  const digits = negative || text.startsWith('+') ? text.slice(1) : text;
  if (!prefixedInteger.test(digits)) throw new StrconvError('ParseInt', text);
  const size = magnitude(digits);
  if (size > (negative ? 1n << 63n : (1n << 63n) - 1n)) throw new StrconvError('ParseInt', text, true);
  return size === 0n ? 0 : Number(negative ? -size : size);
}

/**
 * An unsigned integer.
 *
 * @param options.bits - width; default 64.
 * @param options.decimalOnly - no prefixes, no underscores.
 * @throws {StrconvError}
 */
export function parseGoUint(text: string, options: { bits?: number; decimalOnly?: boolean } = {}): number {
  const grammar = options.decimalOnly === true ? /^[0-9]+$/ : prefixedInteger;
  if (!grammar.test(text)) throw new StrconvError('ParseUint', text);
  const size = options.decimalOnly === true ? BigInt(text) : magnitude(text);
  if (size >= 1n << BigInt(options.bits ?? 64)) throw new StrconvError('ParseUint', text, true);
  return Number(size);
}

function magnitude(digits: string): bigint {
  const plain = digits.replaceAll('_', '');
  return BigInt(/^0[0-7]+$/.test(plain) ? `0o${plain.slice(1)}` : plain);
}

/** Go's literals, with the rule for underscores of `prefixedInteger`. */
const digitRun = '[0-9](?:_?[0-9])*';
const decimalFloat = new RegExp(`^[+-]?(?:${digitRun}\\.?(?:${digitRun})?|\\.${digitRun})(?:[eE][+-]?${digitRun})?$`);
const hex = '[0-9a-fA-F]';
const hexRun = `${hex}(?:_?${hex})*`;
/** Sign, whole part, fraction, and the exponent of two, which must be there. */
const hexFloat = new RegExp(
  `^([+-]?)0[xX](?:_(?=${hex}))?(?=\\.?${hex})((?:${hexRun})?)\\.?((?:${hexRun})?)[pP]([+-]?${digitRun})$`,
);

/** The largest finite number of 32 bits, and half a step more: what rounds beyond it is out of range. */
const float32Limit = 2 ** 128 - 2 ** 103;

/**
 * A floating point number: decimal with an optional exponent, hexadecimal with an exponent of two, `inf`, `infinity` or
 * `nan` in any case. Hexadecimal digits beyond the 53 bits of a number are rounded.
 *
 * @param bits - width; 32 rounds to single precision.
 * @throws {StrconvError}
 */
export function parseGoFloat(text: string, bits: 32 | 64 = 64): number {
  if (/^[+-]?inf(?:inity)?$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return NaN;
  const value = finiteFloat(text);
  const tooLarge = bits === 32 ? Math.abs(value) >= float32Limit : !Number.isFinite(value);
  if (tooLarge) throw new StrconvError('ParseFloat', text, true);
  return bits === 32 ? Math.fround(value) : value;
}

function finiteFloat(text: string): number {
  if (decimalFloat.test(text)) return Number(text.replaceAll('_', ''));
  const [, sign, whole, fraction, exponent] = hexFloat.exec(text) ?? [];
  if (whole === undefined || fraction === undefined || exponent === undefined) {
    throw new StrconvError('ParseFloat', text);
  }
  const [digits, decimals] = [whole + fraction, fraction].map((part) => part.replaceAll('_', ''));
  const size = scaled(Number(`0x${digits}`), Number(exponent.replaceAll('_', '')) - 4 * (decimals?.length ?? 0));
  return sign === '-' ? -size : size;
}

/** `value * 2 ** exponent`, also where the power alone would not fit. */
function scaled(value: number, exponent: number): number {
  if (value === 0) return 0;
  const step = Math.max(-1000, Math.min(1000, exponent));
  const result = value * 2 ** step;
  return step === exponent || result === 0 || result === Infinity ? result : scaled(result, exponent - step);
}
