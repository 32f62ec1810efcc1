/** What the program does besides being the sidecar. */
import path from 'node:path';
import { editDistance } from '../base/edit-distance.ts';
import { goQuote } from '../base/go-quote.ts';
import { argumentSteps } from './parse-flags.ts';
import { usageExit } from '../run/exit.ts';
import type { FoundSubcommand, Subcommand } from './subcommand-call.ts';
import { auditVolumes } from './audit-command.ts';
import { manageJournal } from './journal-command.ts';
import { preflight } from './preflight/preflight-command.ts';
import { explainWhy } from './why.ts';

interface SubcommandEntry {
  readonly run: Subcommand;
  /** For the help of the program. */
  readonly summary: string;
}

const subcommands: Readonly<Record<string, SubcommandEntry>> = {
  why: {
    run: explainWhy,
    summary: 'explain why a claim is not bound, or why a volume stays',
  },
  audit: {
    run: auditVolumes,
    summary: "compare the driver's volumes with PersistentVolumes and the intent journal",
  },
  journal: {
    run: manageJournal,
    summary: 'list, adopt or discard the records of the intent journal, or drain it',
  },
  preflight: {
    run: preflight,
    summary: "say what replacing the Go sidecar changes, from a driver's manifests",
  },
};

/** Up to this many edits a word counts as a mistyped subcommand: a typo must not start a second sidecar. */
const maxEdits = 2;

/**
 * `help` as the first word is `--help`, of the program or of the subcommand that follows: it must not start a sidecar.
 *
 * @param args - the arguments of the program.
 */
export function withHelpFlag(args: readonly string[]): readonly string[] {
  const word = [...argumentSteps(args)].find((step) => step.kind === 'word');
  if (word?.word !== 'help') return args;
  const [name = ''] = word.rest;
  return Object.hasOwn(subcommands, name) ? [name, '--help'] : ['--help'];
}

/**
 * The subcommand that a command line names: the first word that is neither a flag nor the value of one and is its name. Flags of
 * the sidecar are accepted before it, and become its first arguments.
 *
 * @param argv0 - the path of the program as it was called.
 * @param args - the arguments after it.
 * @throws {ExitError} code 2 for a word that is almost the name of one.
 */
export function findSubcommand(argv0: string, args: readonly string[]): FoundSubcommand | undefined {
  const called = path.parse(argv0).name;
  const flags: string[] = [];
  for (const step of argumentSteps(args)) {
    if (step.kind === 'flag') flags.push(step.flag);
    if (step.kind !== 'word') continue;
    const name = nearestSubcommand(step.word);
    const entry = subcommands[name ?? ''];
    if (name === undefined || entry === undefined) continue;
    if (name === step.word) return { run: entry.run, program: `${called} ${name}`, args: [...flags, ...step.rest] };
    throw usageExit(`unknown subcommand ${goQuote(step.word)} (did you mean ${name}?)`);
  }
  return undefined;
}

/** A word that has nothing in common with any name, such as a single letter, is no typo of one. */
function nearestSubcommand(word: string): string | undefined {
  const allowed = Math.min(maxEdits, word.length - 1);
  const distances = Object.keys(subcommands).map((name) => ({ name, edits: editsTo(name, word) }));
  return distances.sort((one, other) => one.edits - other.edits).find(({ edits }) => edits <= allowed)?.name;
}

function editsTo(name: string, word: string): number {
  if (word.length > name.length + maxEdits) return Infinity;
  const edits = editDistance(word.toLowerCase(), name);
  return edits === 0 && word !== name ? 1 : edits;
}

/** What the help of the program says about its subcommands. */
export function subcommandHelp(): string {
  const rows = Object.entries(subcommands).map(([name, { summary }]) => `  ${name.padEnd(11)}${summary}`);
  return ['Subcommands, before or after flags (each has --help)', ...rows, ''].join('\n');
}
