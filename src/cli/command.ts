import { Command, Option } from 'commander';
import { flagGroups, flagList, flagTable, isBoolean, type FlagName, type FlagSpec, type FlagValues } from './flags.ts';
import { parseValue } from './parse-value.ts';

const description = 'Provisions Kubernetes volumes through a CSI driver.';

/**
 * The command with every flag of the table as an option. Parsing never prints or ends the process.
 *
 * @param argv0 - the name of the program as it was called.
 */
export function buildCommand(argv0: string): Command {
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
  const long = `--${name} <${spec.value ?? 'bool'}>`;
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
  return `${short}--${option.name()} <${spec.value ?? spec.kind}>`;
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
export function readOptions(
  command: Command,
  args: readonly string[],
): { values: FlagValues; given: ReadonlySet<FlagName> } {
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
