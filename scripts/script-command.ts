/** Command lines of scripts and benchmarks. */
import { Command, InvalidArgumentError } from 'commander';

/**
 * A command line with `--help`. Invalid arguments end the process with one line on standard error and exit code 2.
 *
 * @param name - how it is called, such as `npm run bench --`.
 */
export function scriptCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .usage('[flags]')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError(`See ${name} --help`)
    .configureHelp({ helpWidth: 100, styleTitle: (title) => title.replace('Options', 'Flags') })
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));
}

/** For an option: a whole number. @throws {InvalidArgumentError} for another text, and below `least`. */
export function wholeNumber(least = 1): (text: string) => number {
  return (text) => {
    if (/^\d{1,15}$/.test(text) && Number(text) >= least) return Number(text);
    throw new InvalidArgumentError(`It must be a whole number of at least ${least}.`);
  };
}
