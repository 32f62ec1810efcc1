/** A text that is no Go duration; the message is the one of Go's `time.ParseDuration`. */
export class GoDurationError extends Error {
  override readonly name = 'GoDurationError';
}

const unitNanoseconds = new Map<string, bigint>([
  ['ns', 1n],
  ['us', 1_000n],
  ['\u00b5s', 1_000n], // the micro sign
  ['\u03bcs', 1_000n], // the Greek letter mu
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);

/** One more than the maximum magnitude that Go's signed 64-bit nanoseconds hold. */
const overflow = 1n << 63n;

/** Digits, at most one point, and whatever follows up to the next digit or point: the unit, possibly missing. */
const step = /^([0-9]*)(?:\.([0-9]*))?([^0-9.]*)/;

/**
 * Nanoseconds of a duration in Go's syntax: an optional sign, then numbers with units (`1m30s`, `1.5h`, `.5s`), or a
 * bare `0`. Units are `ns us \u00b5s ms s m h`; the result lies within 64 bits.
 *
 * @throws {GoDurationError} with Go's own text.
 * @see Go package `time`, `ParseDuration`.
 */
export function parseGoDuration(text: string): bigint {
  const negative = text.startsWith('-');
  let rest = negative || text.startsWith('+') ? text.slice(1) : text;
  if (rest === '0') return 0n;
  if (rest === '') throw invalid(text);
  let total = 0n;
  while (rest !== '') {
    const [whole, digits = '', fraction, unit = ''] = step.exec(rest) ?? [''];
    if (digits === '' && (fraction ?? '') === '') throw invalid(text);
    if (BigInt(digits) > overflow) throw invalid(text);
    if (unit === '') throw new GoDurationError(`time: missing unit in duration ${quote(text)}`);
    const nanoseconds = unitNanoseconds.get(unit);
    if (nanoseconds === undefined) {
      throw new GoDurationError(`time: unknown unit ${quote(unit)} in duration ${quote(text)}`);
    }
    total += BigInt(digits) * nanoseconds + fractionOf(fraction ?? '', nanoseconds);
    if (total > overflow) throw invalid(text);
    rest = rest.slice(whole.length);
  }
  if (negative) return -total; // the lowest 64-bit number has no positive twin
  if (total === overflow) throw invalid(text);
  return total;
}

/** A fraction of a unit, truncated to whole nanoseconds. Go computes it in floating point, hence the same here. */
function fractionOf(digits: string, nanoseconds: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit);
    if (next > overflow) break; // more digits than 64 bits hold change nothing
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(nanoseconds) / scale)));
}

function invalid(text: string): GoDurationError {
  return new GoDurationError(`time: invalid duration ${quote(text)}`);
}

/** Go's `time` quotes by bytes: whatever is not printable ASCII becomes `\xNN`. */
function quote(text: string): string {
  let quoted = '';
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    if (byte < 0x20 || byte >= 0x80) quoted += `\\x${byte.toString(16).padStart(2, '0')}`;
    else quoted += character === '"' || character === '\\' ? `\\${character}` : character;
  }
  return `"${quoted}"`;
}

/**
 * A duration as Go prints it: `0s`, `1.5ms`, `1m30s`, `1h0m0s`.
 *
 * @see Go package `time`, `Duration.String`.
 */
export function formatGoDuration(nanoseconds: bigint): string {
  const sign = nanoseconds < 0n ? '-' : '';
  const size = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  if (size === 0n) return '0s';
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < 1_000_000n) return `${sign}${decimal(size, 3)}\u00b5s`;
  if (size < 1_000_000_000n) return `${sign}${decimal(size, 6)}ms`;
  const minutes = size / 60_000_000_000n;
  const seconds = `${decimal(size % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** `value` divided by ten to the power of `places`, without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0');
  const fraction = digits.slice(-places).replace(/0+$/, '');
  const whole = digits.slice(0, -places);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Milliseconds of a duration in nanoseconds, fractions kept as far as a number holds them. */
export function millisecondsOf(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e6;
}

/** Nanoseconds of a duration in milliseconds, to the nearest whole one: for `formatGoDuration`. */
export function nanosecondsOf(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds * 1e6));
}

/** Milliseconds of a duration in Go's syntax, such as `1h30m`; undefined for any other text. */
export function durationMs(text: string): number | undefined {
  try {
    return millisecondsOf(parseGoDuration(text));
  } catch (error) {
    if (error instanceof GoDurationError) return undefined;
    throw error;
  }
}
