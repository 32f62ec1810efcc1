import { goQuote } from '../base/go-quote.ts';
import { buildCommand, readOptions } from './command.ts';
import { usageExit } from './command-line-exit.ts';
import { findFlag, isBoolean, type FlagName, type FlagValues } from './flags.ts';
import { nearestFlag } from './nearest-flag.ts';
import { FlagValueError } from './parse-value.ts';

/** A command line as far as flags go. */
export type ParsedFlags =
  | {
      readonly kind: 'flags';
      readonly values: FlagValues;
      /** The flags that were given. */
      readonly given: ReadonlySet<FlagName>;
      /** Arguments that are no flags: without effect, worth a warning. */
      readonly ignored: readonly string[];
    }
  | { readonly kind: 'help' };

/** The arguments in one canonical form, up to the first one that ends parsing. */
interface NormalArguments {
  /** Each `--name=value`. */
  readonly flags: string[];
  readonly ignored: string[];
  /** How parsing ended: at the end, at a request for help, or at a syntax error with this text. */
  readonly end: 'complete' | 'help' | { readonly error: string };
}

/**
 * Reads a command line by the grammar of the Go sidecar (pflag): values may follow after a blank whatever they look
 * like, booleans take a value only after `=`, a single dash starts one-letter flags. The first problem from the left
 * decides.
 *
 * @param args - without the name of the program.
 * @throws {ExitError} code 2, with one line: the error as the Go sidecar words it, and the flag that was meant.
 */
export function parseFlags(argv0: string, args: readonly string[]): ParsedFlags {
  const { flags, ignored, end } = normalise(args);
  try {
    const { values, given } = readOptions(buildCommand(argv0), flags);
    if (end === 'complete') return { kind: 'flags', values, given, ignored };
  } catch (error) {
    if (error instanceof FlagValueError) throw usageExit(error.message, error);
    throw error;
  }
  if (end === 'help') return { kind: 'help' };
  throw usageExit(end.error);
}

function normalise(args: readonly string[]): NormalArguments {
  const flags: string[] = [];
  const ignored: string[] = [];
  const rest = [...args];
  for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
    if (!argument.startsWith('-') || argument === '-') {
      ignored.push(argument);
      continue;
    }
    if (argument === '--') {
      ignored.push(...rest);
      break;
    }
    const { flag, end } = argument.startsWith('--') ? longFlag(argument, rest) : shortFlags(argument.slice(1), rest);
    if (end !== undefined) return { flags, ignored, end };
    if (flag !== undefined) flags.push(flag);
  }
  return { flags, ignored, end: 'complete' };
}

/** One argument in canonical form, or what ends parsing; neither if it says nothing. */
interface Step {
  readonly flag?: string;
  readonly end?: 'help' | { readonly error: string };
}

/** Reads `--name` and, if its value is the next argument, takes that from `rest`. */
function longFlag(argument: string, rest: string[]): Step {
  const body = argument.slice(2);
  if (body.startsWith('-') || body.startsWith('=')) return { end: { error: `bad flag syntax: ${argument}` } };
  const equals = body.indexOf('=');
  const name = equals < 0 ? body : body.slice(0, equals);
  const spec = findFlag(name);
  if (spec === undefined) return { end: name === 'help' ? 'help' : { error: `unknown flag: --${name}${hint(name)}` } };
  if (equals >= 0) return { flag: argument };
  if (isBoolean(spec)) return { flag: `--${name}=true` };
  const value = rest.shift();
  return value === undefined ? { end: { error: `flag needs an argument: --${name}` } } : { flag: `--${name}=${value}` };
}

/** `-v` is the only one-letter flag beside `-h`, and takes whatever follows it, so there are no clusters. */
function shortFlags(cluster: string, rest: string[]): Step {
  if (cluster.startsWith('test.')) return {};
  if (cluster.startsWith('h')) return { end: 'help' };
  if (!cluster.startsWith('v')) {
    const firstByte = String.fromCharCode(Buffer.from(cluster)[0] ?? 0);
    const name = cluster.replace(/=[^]*$/, '');
    const meant = name.length > 1 ? hint(name) : '';
    return { end: { error: `unknown shorthand flag: ${quotedLetter(firstByte)} in -${cluster}${meant}` } };
  }
  if (cluster.length > 2 && cluster[1] === '=') return { flag: `--v=${cluster.slice(2)}` };
  if (cluster.length > 1) return { flag: `--v=${cluster.slice(1)}` };
  const value = rest.shift();
  return value === undefined ? { end: { error: "flag needs an argument: 'v' in -v" } } : { flag: `--v=${value}` };
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
