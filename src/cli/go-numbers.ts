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

const decimalFloat = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

/** The largest finite number of 32 bits, and half a step more: what rounds beyond it is out of range. */
const float32Limit = 2 ** 128 - 2 ** 103;

/**
 * A floating point number: decimal with an optional exponent, `inf`, `infinity` or `nan` in any case.
 *
 * @param bits - width; 32 rounds to single precision.
 * @throws {StrconvError}
 */
export function parseGoFloat(text: string, bits: 32 | 64 = 64): number {
  if (/^[+-]?inf(?:inity)?$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return NaN;
  if (!decimalFloat.test(text)) throw new StrconvError('ParseFloat', text);
  const value = Number(text);
  const tooLarge = bits === 32 ? Math.abs(value) >= float32Limit : !Number.isFinite(value);
  if (tooLarge) throw new StrconvError('ParseFloat', text, true);
  return bits === 32 ? Math.fround(value) : value;
}
