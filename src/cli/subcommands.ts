/** What the program does besides being the sidecar. Only the very first argument can be a subcommand. */
import path from 'node:path';
import { printable } from '../base/printable.ts';
import { type Subcommand, type SubcommandCall, SubcommandError } from './subcommand-call.ts';
import { auditVolumes } from './audit-command.ts';
import { manageJournal } from './journal-command.ts';
import { explainWhy } from './why.ts';

interface SubcommandEntry {
  readonly run: Subcommand;
  /** For the help of the program. */
  readonly summary: string;
  /** A link to the program of this name starts the subcommand: so kubectl finds its plugins. */
  readonly link?: string;
  /** How somebody who uses the link calls it. */
  readonly linkedAs?: string;
}

const subcommands: Readonly<Record<string, SubcommandEntry>> = {
  why: {
    run: explainWhy,
    summary: 'explain why a claim is not bound, or why a volume stays',
    link: 'kubectl-why_pvc',
    linkedAs: 'kubectl why-pvc',
  },
  audit: {
    run: auditVolumes,
    summary: "compare the driver's volumes with PersistentVolumes and the intent journal",
  },
  journal: {
    run: manageJournal,
    summary: 'list, export, adopt or discard the records of the intent journal, or drain it',
  },
};

/** A subcommand with the part of its call that the command line decides. */
export interface FoundSubcommand extends Pick<SubcommandCall, 'program' | 'args'> {
  readonly run: Subcommand;
}

/**
 * The subcommand that a command line asks for.
 *
 * @param argv0 - the path of the program as it was called.
 * @param args - the arguments behind it.
 */
export function findSubcommand(argv0: string, args: readonly string[]): FoundSubcommand | undefined {
  const called = path.parse(argv0).name;
  for (const [name, { run, link, linkedAs = name }] of Object.entries(subcommands)) {
    if (called === link) return { run, program: linkedAs, args };
    if (args[0] === name) return { run, program: `${called} ${name}`, args: args.slice(1) };
  }
  return undefined;
}

/** What the help of the program says about its subcommands. */
export function subcommandHelp(): string {
  const rows = Object.entries(subcommands).map(([name, { summary }]) => `  ${name.padEnd(8)}${summary}`);
  return ['Subcommands, as the first argument (each has --help)', ...rows, ''].join('\n');
}

/**
 * Exit codes when standard output can no longer be written. A reader that goes away, such as `head`, ends the process in silence,
 * as SIGPIPE ends other programs. Never 0, which stands for a good result.
 */
const outputCodes = { readerGone: 128 + 13, failed: 3 } as const;

/** Runs a subcommand on the streams and signals of a process. @returns the exit code. */
export async function runSubcommand(
  { run, program, args }: FoundSubcommand,
  process: Pick<NodeJS.Process, 'env' | 'stdin' | 'stdout' | 'stderr' | 'once' | 'exit'>,
): Promise<number> {
  const { stdin, stdout, stderr, env: environment } = process;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    const isReaderGone = error.code === 'EPIPE';
    if (!isReaderGone) stderr.write(`${program}: the output cannot be written: ${error.message}\n`);
    process.exit(isReaderGone ? outputCodes.readerGone : outputCodes.failed);
  });
  stderr.on('error', () => undefined);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => stop.abort(new Error(`received ${signal}`)));
  }
  try {
    return await run({ program, args, environment, stdin, stdout, stderr, signal: stop.signal });
  } catch (error) {
    if (!(error instanceof SubcommandError)) throw error;
    stderr.write(`${program}: ${error.message.split('\n').map(printable).join('\n')}\n`);
    return error.exitCode;
  }
}
