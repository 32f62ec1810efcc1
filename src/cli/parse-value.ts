import { parseGoBool, StrconvError } from '../base/go-bool.ts';
import { GoDurationError, parseGoDuration } from '../base/go-duration.ts';
import { goQuote } from '../base/go-quote.ts';
import { quantityBytes } from '../base/quantity.ts';
import type { FlagKind, FlagSpec, JournalKind, KindValues, VmoduleItem } from './flags.ts';

/** A value that its flag does not accept. */
export class FlagValueError extends Error {
  override readonly name = 'FlagValueError';

  /** @param reason - the last part of the error line. */
  constructor(flag: string, spec: FlagSpec, text: string, reason: string) {
    const spelled = spec.shorthand === undefined ? `--${flag}` : `-${spec.shorthand}, --${flag}`;
    super(`invalid argument ${goQuote(text)} for ${goQuote(spelled)} flag: ${reason}`);
  }
}

type Reader<Kind extends FlagKind> = (text: string, previous: KindValues[Kind] | undefined) => KindValues[Kind];

const readers: { readonly [Kind in FlagKind]: Reader<Kind> } = {
  string: (text) => text,
  bool: (text) => parseGoBool(text),
  duration: (text) => parseGoDuration(text),
  int: (text) => parseGoInt(text),
  uint: (text) => parseGoUint(text),
  float: (text) => parseGoFloat(text),
  float32: (text) => parseGoFloat(text, 32),
  verbosity: (text) => parseGoUint(text, { bits: 31, decimalOnly: true }),
  quantity: readQuantity,
  gates: readGates,
  labels: readLabels,
  vmodule: readVmodule,
  journal: readJournalKind,
  'unused-bool': (text) => text !== '' && parseGoBool(text),
};

/**
 * Reads one value of a flag.
 *
 * @param previous - what the flag holds so far; lists and maps add to it, all others replace it.
 * @throws {FlagValueError} whose message is the error line.
 */
export function parseValue<Kind extends FlagKind>(
  flag: string,
  spec: FlagSpec & { readonly kind: Kind },
  text: string,
  previous?: KindValues[Kind],
): KindValues[Kind] {
  try {
    return readers[spec.kind](text, previous);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new FlagValueError(flag, spec, text, reasonOf(error, spec));
  }
}

/** Terse flags drop the details, as Go's flag package does. */
function reasonOf(error: Error, spec: FlagSpec): string {
  if (spec.isTerse !== true) return error.message;
  if (error instanceof StrconvError && error.outOfRange) return 'value out of range';
  return error instanceof StrconvError || error instanceof GoDurationError ? 'parse error' : error.message;
}

function readGates(text: string, previous: ReadonlyMap<string, boolean> = new Map()): ReadonlyMap<string, boolean> {
  const gates = new Map(previous);
  for (const part of text.split(',')) {
    if (part === '') continue;
    const [, name, word] = /^([^=]*)=([^]*)$/.exec(part) ?? [];
    if (name === undefined || word === undefined) throw new Error('malformed pair, expect string=bool');
    gates.set(name.trim(), gateValue(name.trim(), word.trim()));
  }
  return gates;
}

function gateValue(name: string, word: string): boolean {
  try {
    return parseGoBool(word);
  } catch (error) {
    throw new Error(`invalid value of ${name}: ${word}, err: ${(error as Error).message}`, { cause: error });
  }
}

function readLabels(text: string, previous: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const labels = new Map(previous);
  for (const part of text.split(',')) {
    const [key, value, ...more] = part.split(':');
    if (key === undefined || value === undefined || more.length > 0) {
      throw new Error(`malformed item in list of labels: ${part}`);
    }
    labels.set(key, value);
  }
  return labels;
}

function readVmodule(text: string, previous: readonly VmoduleItem[] = []): readonly VmoduleItem[] {
  const items = [...previous];
  for (const part of text.split(',')) {
    if (part === '') continue;
    const [pattern = '', level = '', ...more] = part.split('=');
    if (pattern === '' || level === '' || more.length > 0) {
      throw new Error(`${goQuote(part)} does not have the pattern=N format`);
    }
    items.push({ pattern, verbosity: vmoduleLevel(part, level) });
  }
  return items;
}

function vmoduleLevel(part: string, level: string): number {
  try {
    return parseGoUint(level, { bits: 31, decimalOnly: true });
  } catch (error) {
    throw new Error(`parsing verbosity in ${goQuote(part)}: ${(error as Error).message}`, { cause: error });
  }
}

function readJournalKind(text: string): JournalKind {
  if (text === 'lease' || text === 'off') return text;
  if (text === 'configmap') {
    throw new Error(
      'ConfigMaps need permissions that no manifest grants, and everybody with the role "view" can read them; use lease, or off',
    );
  }
  throw new Error('must be lease or off');
}

/** A Kubernetes quantity in whole units, rounded up. */
function readQuantity(text: string): bigint {
  try {
    return quantityBytes(text);
  } catch (error) {
    const expected = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    throw new Error(expected, { cause: error });
  }
}

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
