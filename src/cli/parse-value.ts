import { GoDurationError, parseGoDuration } from '../base/go-duration.ts';
import { goQuote } from '../base/go-quote.ts';
import { quantityBytes } from '../base/quantity.ts';
import type { FlagKind, FlagSpec, JournalKind, KindValues, VmoduleItem } from './flags.ts';
import { parseGoBool, StrconvError } from '../base/go-bool.ts';
import { parseGoFloat, parseGoInt, parseGoUint } from './go-numbers.ts';

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

/** Flags of class G drop the details, as Go's flag package does. */
function reasonOf(error: Error, spec: FlagSpec): string {
  const detailed = spec.class === 'P' || spec.kind === 'unused-bool';
  if (detailed) return error.message;
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
