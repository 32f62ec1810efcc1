/** A command line split by the grammar of the Go sidecar, before any value is parsed. */
import { Command, Option } from 'commander';
import { editDistance } from '../base/edit-distance.ts';
import { isGoBool } from '../base/go-bool.ts';
import { goQuote } from '../base/go-quote.ts';
import { usageExit } from '../run/exit.ts';
import {
  findFlag,
  flagGroups,
  flagList,
  type FlagName,
  type FlagSpec,
  flagTable,
  type FlagValues,
  isBoolean,
  placeholderOf,
} from './flags.ts';
import { FlagValueError, parseValue } from './parse-value.ts';

/** Max length of a name that counts as a typo. */
const maxTypoLength = 100;

/** What one argument, or a flag with its value in the next one, says. */
type ArgumentStep =
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

const description = 'Provisions Kubernetes volumes through a CSI driver.';

/**
 * The command with every flag of the table as an option. Parsing never prints or ends the process.
 *
 * @param argv0 - the name of the program as it was called.
 */
function buildCommand(argv0: string): Command {
  const command = new Command(argv0)
    .description(description)
    .helpOption(false)
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
    .configureHelp({ helpWidth: 100, optionTerm, optionDescription })
    .action(() => undefined);
  for (const group of Object.keys(flagGroups)) {
    for (const [name, spec] of flagList) if (spec.group === group) command.addOption(optionOf(name, spec));
  }
  return command;
}

/** The help text: flags by group, 100 columns wide, ending with a line break. */
export function helpText(argv0: string): string {
  return buildCommand(argv0)
    .helpInformation()
    .replace(/^Usage: .*\n/, () => `Usage of ${argv0}:\n`);
}

function optionOf(name: FlagName, spec: FlagSpec): Option {
  const long = `--${name} <${placeholderOf(spec) ?? 'bool'}>`;
  return new Option(spec.shorthand === undefined ? long : `-${spec.shorthand}, ${long}`, spec.description)
    .default(defaultValue(name, spec))
    .argParser((text, previous: ReturnType<typeof parseValue>) => parseValue(name, spec, text, previous))
    .helpGroup(`${flagGroups[spec.group]}:`);
}

/** No labels is the one default that cannot be written on a command line. */
function defaultValue(name: FlagName, spec: FlagSpec): unknown {
  return spec.kind === 'labels' ? new Map<string, string>() : parseValue(name, spec, spec.default);
}

function specOf(option: Option): FlagSpec {
  return flagTable[option.name() as FlagName];
}

/** Booleans take a value only behind `=`, and need none to be true. */
function optionTerm(option: Option): string {
  const spec = specOf(option);
  const short = spec.shorthand === undefined ? '    ' : `-${spec.shorthand}, `;
  if (isBoolean(spec)) return `${short}--${option.name()}${spec.default === 'true' ? '=false' : ''}`;
  return `${short}--${option.name()} <${placeholderOf(spec) ?? spec.kind}>`;
}

function optionDescription(option: Option): string {
  const spec = specOf(option);
  const notes = [
    ...(spec.withoutEffect === true ? ['accepted, without effect'] : []),
    ...(spec.deprecated === undefined ? [] : [`deprecated: ${spec.deprecated}`]),
    ...(showsDefault(spec) ? [`default: ${spec.defaultNote ?? spec.default}`] : []),
  ];
  return notes.length === 0 ? spec.description : `${spec.description} (${notes.join('; ')})`;
}

function showsDefault(spec: FlagSpec): boolean {
  return spec.defaultNote !== undefined || (spec.default !== '' && spec.default !== 'false' && !spec.withoutEffect);
}

/**
 * Lets the command read arguments that all have the form `--name=value`.
 *
 * @throws {FlagValueError} at the first value that its flag does not accept.
 */
function readOptions(command: Command, args: readonly string[]): { values: FlagValues; given: ReadonlySet<FlagName> } {
  command.parse(args, { from: 'user' });
  const values: Partial<Record<FlagName, unknown>> = {};
  const given = new Set<FlagName>();
  for (const option of command.options) {
    const name = option.name() as FlagName;
    values[name] = command.getOptionValue(option.attributeName());
    if (command.getOptionValueSource(option.attributeName()) === 'cli') given.add(name);
  }
  return { values: values as FlagValues, given };
}

/** A command line as far as flags go. */
type ParsedFlags =
  | {
      readonly kind: 'flags';
      readonly values: FlagValues;
      readonly given: ReadonlySet<FlagName>;
      /** Arguments that are no flags: without effect, worth a warning. */
      readonly ignored: readonly string[];
    }
  | { readonly kind: 'help' };

/**
 * Reads a command line by the grammar of the Go sidecar (pflag): values may follow after a blank whatever they look
 * like, booleans take a value only after `=`, a single dash starts one-letter flags. The first problem from the left
 * decides.
 *
 * @param args - without the name of the program.
 * @throws {ExitError} code 2, with one line: the error as the Go sidecar words it, and the flag that was meant.
 */
export function parseFlags(argv0: string, args: readonly string[]): ParsedFlags {
  const steps = [...argumentSteps(args)];
  const ignored = steps.filter((step) => step.kind === 'word').map(({ word }) => word);
  try {
    const { values, given } = readOptions(buildCommand(argv0), canonicalFlags(steps));
    const end = steps.at(-1);
    if (end?.kind === 'help') return { kind: 'help' };
    if (end?.kind === 'error') throw usageExit(end.error);
    return { kind: 'flags', values, given, ignored };
  } catch (error) {
    if (error instanceof FlagValueError) throw usageExit(error.message, error);
    throw error;
  }
}
