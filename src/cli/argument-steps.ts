/** A command line split by the grammar of the Go sidecar, before any value is parsed. */
import { editDistance } from '../base/edit-distance.ts';
import { goQuote } from '../base/go-quote.ts';
import { isGoBool } from '../base/go-bool.ts';
import { findFlag, flagList, type FlagName, isBoolean } from './flags.ts';

/** Max length of a name that counts as a typo. */
const maxTypoLength = 100;

/** What one argument, or a flag with its value in the next one, says. */
export type ArgumentStep =
  /** In canonical form, `--name=value`. */
  | { readonly kind: 'flag'; readonly flag: string }
  /** No flag, and no value of one. */
  | {
      readonly kind: 'word';
      readonly word: string;
      /** The arguments after it. */
      readonly rest: readonly string[];
      /** It comes after a boolean flag that needs `=`, and was meant as its value. */
      readonly isLooseValue: boolean;
    }
  /** The last step: help is requested, or nothing further can be parsed. */
  | { readonly kind: 'help' }
  | { readonly kind: 'error'; readonly error: string };

/**
 * Splits the arguments, from left to right, up to the first one that cannot be parsed. The next argument can be a value,
 * whatever it looks like; booleans take a value only after `=`; a single dash starts one-letter flags.
 *
 * @param args - without the name of the program.
 */
export function* argumentSteps(args: readonly string[]): Generator<ArgumentStep, void, undefined> {
  const rest = [...args];
  let isBehindBoolean = false;
  for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
    if (argument === '--') {
      yield* wordSteps(rest);
      return;
    }
    if (!argument.startsWith('-') || argument === '-') {
      yield { kind: 'word', word: argument, rest: [...rest], isLooseValue: isBehindBoolean && isGoBool(argument) };
      isBehindBoolean = false;
      continue;
    }
    const step = argument.startsWith('--') ? longFlag(argument, rest) : shortFlags(argument.slice(1), rest);
    isBehindBoolean = step?.kind === 'flag' && step.flag === `${argument}=true`;
    if (step !== undefined) yield step;
    if (step?.kind === 'help' || step?.kind === 'error') return;
  }
}

/** The flags among the steps. */
export function canonicalFlags(steps: readonly ArgumentStep[]): string[] {
  return steps.filter((step) => step.kind === 'flag').map(({ flag }) => flag);
}

/** The words among the arguments, except those that were meant as the value of a boolean. */
export function meantWords(args: readonly string[]): string[] {
  const words = [...argumentSteps(args)].filter((step) => step.kind === 'word');
  return words.filter(({ isLooseValue }) => !isLooseValue).map(({ word }) => word);
}

/** After `--` nothing is a flag. */
function wordSteps(words: readonly string[]): ArgumentStep[] {
  return words.map((word, index) => ({ kind: 'word', word, rest: words.slice(index + 1), isLooseValue: false }));
}

/** Reads `--name` and, if its value is the next argument, takes that from `rest`. */
function longFlag(argument: string, rest: string[]): ArgumentStep | undefined {
  const body = argument.slice(2);
  if (body.startsWith('-') || body.startsWith('=')) return failed(`bad flag syntax: ${argument}`);
  const equals = body.indexOf('=');
  const name = equals < 0 ? body : body.slice(0, equals);
  const spec = findFlag(name);
  if (spec === undefined) return name === 'help' ? { kind: 'help' } : failed(`unknown flag: --${name}${hint(name)}`);
  if (equals >= 0) return { kind: 'flag', flag: argument };
  if (isBoolean(spec)) return { kind: 'flag', flag: `--${name}=true` };
  const value = rest.shift();
  return value === undefined
    ? failed(`flag needs an argument: --${name}`)
    : { kind: 'flag', flag: `--${name}=${value}` };
}

/** `-v` is the only one-letter flag beside `-h`, and takes whatever follows it, so there are no clusters. */
function shortFlags(cluster: string, rest: string[]): ArgumentStep | undefined {
  if (cluster.startsWith('test.')) return undefined;
  if (cluster.startsWith('h')) return { kind: 'help' };
  if (!cluster.startsWith('v')) {
    const firstByte = String.fromCharCode(Buffer.from(cluster)[0] ?? 0);
    const name = cluster.replace(/=[^]*$/, '');
    const meant = name.length > 1 ? hint(name) : '';
    return failed(`unknown shorthand flag: ${quotedLetter(firstByte)} in -${cluster}${meant}`);
  }
  if (cluster.length > 2 && cluster[1] === '=') return { kind: 'flag', flag: `--v=${cluster.slice(2)}` };
  if (cluster.length > 1) return { kind: 'flag', flag: `--v=${cluster.slice(1)}` };
  const value = rest.shift();
  return value === undefined ? failed("flag needs an argument: 'v' in -v") : { kind: 'flag', flag: `--v=${value}` };
}

function failed(error: string): ArgumentStep {
  return { kind: 'error', error };
}

function quotedLetter(letter: string): string {
  if (letter === '"') return `'"'`;
  return letter === "'" ? `'\\''` : `'${goQuote(letter).slice(1, -1)}'`;
}

/** Suggests the flag that was meant, where one is close. */
function hint(name: string): string {
  const meant = findFlag(name) === undefined ? nearestFlag(name) : name;
  return meant === undefined ? '' : ` (did you mean --${meant}?)`;
}

/**
 * The flag that was most likely meant, or undefined when none is close: one within a third of the letters, else
 * the longest one that makes up the beginning or the end, as in `--enable-leader-election`.
 *
 * @param given - a name that no flag has, without dashes.
 */
function nearestFlag(given: string): FlagName | undefined {
  if (given.length > maxTypoLength) return undefined;
  const word = given.toLowerCase().replaceAll('_', '-');
  let nearest: { name: FlagName; distance: number } | undefined;
  let part: FlagName | undefined;
  for (const [name] of flagList) {
    const distance = editDistance(word, name);
    const near = distance <= Math.max(word.length, name.length) / 3;
    if (near && distance < (nearest?.distance ?? Infinity)) nearest = { name, distance };
    if (!word.startsWith(`${name}-`) && !word.endsWith(`-${name}`)) continue;
    if (name.length > Math.max(2, part?.length ?? 0)) part = name;
  }
  return nearest?.name ?? part;
}
