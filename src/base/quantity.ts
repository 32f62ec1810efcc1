import { shortValue } from './short-value.ts';
/**
 * Kubernetes quantities (Kubernetes API reference, "Quantity") with exact arithmetic: a value is a whole number of
 * nano units in a bigint, so nothing between 1n and 2^63-1 is ever rounded by accident.
 */

/** How a quantity was written, and so how it is written again. */
export type QuantityFormat = 'BinarySI' | 'DecimalSI' | 'DecimalExponent';

export interface Quantity {
  /** The value times 10^9. */
  nanos: bigint;
  format: QuantityFormat;
}

/** A text that is no quantity; the message names it. */
export class QuantityError extends Error {
  override readonly name = 'QuantityError';
  readonly text: string;

  constructor(text: string, why: string) {
    super(`invalid quantity ${JSON.stringify(shortValue(text))}: ${why}`);
    this.text = text;
  }
}

const nanosPerUnit = 1_000_000_000n;
/** The API holds quantities within a signed 64-bit number of whole units; larger ones become this. */
const largestNanos = (2n ** 63n - 1n) * nanosPerUnit;

const decimalExponents: Record<string, number> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

const pattern = /^([+-]?)(\d*\.?\d*)(?:([numkMGTPE]?)|(Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?\d+))$/;

/**
 * Reads a quantity such as `5Gi`, `1.5G`, `100m`, `1e9` or a bare JSON number.
 *
 * Digits below 10^-9 are rounded away from zero and values beyond 2^63-1 become 2^63-1, as in the API server. A number without any digit,
 * such as `-` or `.`, is 0, also as there.
 *
 * @throws {QuantityError} when the text is no quantity.
 */
export function parseQuantity(value: string | number): Quantity {
  const text = String(value);
  const match = pattern.exec(text);
  const [, sign, digits = '', decimal, binary, exponent] = match ?? [];
  if (match === null || (!/\d/.test(digits) && !isZeroWithoutDigits(text, binary, exponent)))
    throw new QuantityError(text, 'expected a number with an optional suffix');
  const [whole = '', fraction = ''] = digits.split('.');
  const mantissa = BigInt(whole + fraction); // of '' it is 0
  const shift = exponent === undefined ? (decimalExponents[decimal ?? ''] ?? 0) : boundedExponent(exponent, text);
  const factor = binary === undefined ? 1n : 1024n ** BigInt(binarySuffixes.indexOf(binary));
  const nanos = clamp(scaledRoundingUp(mantissa * factor, shift - fraction.length + 9));
  return {
    nanos: sign === '-' ? -nanos : nanos,
    format: binary !== undefined ? 'BinarySI' : exponent !== undefined ? 'DecimalExponent' : 'DecimalSI',
  };
}

/**
 * The value of a quantity as a whole number, fractions rounded away from zero: the bytes of a storage request.
 *
 * @throws {QuantityError} when the text is no quantity.
 */
export function quantityBytes(value: string | number): bigint {
  const { nanos } = parseQuantity(value);
  const magnitude = nanos < 0n ? -nanos : nanos;
  const whole = (magnitude + nanosPerUnit - 1n) / nanosPerUnit;
  return nanos < 0n ? -whole : whole;
}

/**
 * The canonical text: no fraction digits, the largest fitting suffix. A binary quantity below 1024 or with a fraction
 * is written in decimal form, so that nothing is lost.
 */
export function formatQuantity({ nanos, format }: Quantity): string {
  const sign = nanos < 0n ? '-' : '';
  const magnitude = nanos < 0n ? -nanos : nanos;
  const whole = magnitude / nanosPerUnit;
  if (format === 'BinarySI' && whole >= 1024n && magnitude % nanosPerUnit === 0n) return sign + binaryText(whole);
  return sign + decimalText(magnitude, format);
}

/**
 * The text for `spec.capacity.storage` of a volume: exactly these bytes, in the canonical form of a binary quantity
 * (`1536Mi`, `4097`, and `1k` for exactly 1000).
 */
export function capacityText(bytes: bigint): string {
  return formatQuantity({ nanos: bytes * nanosPerUnit, format: 'BinarySI' });
}

/** Where the API server accepts a number that has no digits. What is large or fine it reads in another way, which does not. */
function isZeroWithoutDigits(text: string, binary = '', exponent = '0'): boolean {
  return text !== '' && binary !== 'Pi' && binary !== 'Ei' && Number(exponent) >= -9;
}

/** Beyond a few hundred digits the result is the bound anyway; an unbounded power would take all memory. */
function boundedExponent(exponent: string, text: string): number {
  const limit = text.length + 64;
  return Math.max(-limit, Math.min(limit, Number(exponent)));
}

function scaledRoundingUp(value: bigint, power: number): bigint {
  if (power >= 0) return value * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (value + divisor - 1n) / divisor;
}

function clamp(nanos: bigint): bigint {
  return nanos > largestNanos ? largestNanos : nanos;
}

function binaryText(whole: bigint): string {
  let value = whole;
  let steps = 0;
  while (value >= 1024n && value % 1024n === 0n && steps < binarySuffixes.length - 1) {
    value /= 1024n;
    steps += 1;
  }
  return `${value}${binarySuffixes[steps] ?? ''}`;
}

function decimalText(magnitude: bigint, format: QuantityFormat): string {
  if (magnitude === 0n) return '0';
  let value = magnitude;
  let exponent = -9;
  while (value % 1000n === 0n && exponent < 18) {
    value /= 1000n;
    exponent += 3;
  }
  if (format === 'DecimalExponent') return exponent === 0 ? `${value}` : `${value}e${exponent}`;
  const suffix = Object.keys(decimalExponents).find((key) => decimalExponents[key] === exponent) ?? '';
  return `${value}${suffix}`;
}
