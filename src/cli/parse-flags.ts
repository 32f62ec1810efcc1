import { argumentSteps, canonicalFlags } from './argument-steps.ts';
import { buildCommand, readOptions } from './command.ts';
import { usageExit } from './command-line-exit.ts';
import type { FlagName, FlagValues } from './flags.ts';
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
