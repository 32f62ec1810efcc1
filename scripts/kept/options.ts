import { parseArgs } from 'node:util';
import path from 'node:path';
import { goHelp } from '../../test/support/go-sidecar/go-sidecar.ts';

/** What runs between the kill and the start of the successor, and how that becomes the one that works. */
export const modes = {
  crash: 'nothing: the same sidecar starts again, without an election',
  election: 'nothing: another Pod takes over, with an election',
  'journal-off': 'the same sidecar with --intent-journal=off',
  other: 'the sidecar of --other',
} as const;

export type Mode = keyof typeof modes;

export interface KeptOptions {
  /** Records of saved volumes that must be open at the kills, in sum. */
  records: number;
  /** Claims of one round. */
  claims: number;
  mode: Mode;
  /** Command of the sidecar, as words. */
  sidecar: string;
  /** Command of the sidecar that runs in between, or `go`. */
  other: string | undefined;
  /** Value of --timeout, in milliseconds. */
  timeoutMs: number;
  /** Pause before each round, in milliseconds: what the caches know of PersistentVolumes grows old. */
  quietMs: number;
  cluster: 'sandbox' | 'kubernetes';
  /** Where logs are kept. */
  logFolder: string | undefined;
}

export const usage = `npm run kept -- [flags]

Kills the sidecar while the intent journal has open records of volumes that are saved already. Then an administrator sets
these PersistentVolumes to Retain and deletes them and their claims, as for a move to another cluster, and the sidecar
starts again. That is repeated until enough records were open at a kill. Exit code 1 if storage that was kept so has been
deleted, or if a record is never decided.

  --records N          open records of saved volumes, in sum of all kills, default 2000
  --claims N           claims of one round, default 500
  --mode NAME          what runs between the kill and the next start, default crash
  --other CMD          command of the other sidecar, for --mode other; its words are separated by blanks;
                       ${goHelp}
  --bundle PATH        runs that bundle, such as dist/csi-provisioner.js, instead of the sources
  --sidecar CMD        runs that command instead
  --timeout SECONDS    value of the sidecar's --timeout, default 5
  --quiet SECONDS      pause before each round, in which no PersistentVolume changes, default 0
  --cluster NAME       kubernetes (default) or sandbox
  --logs DIR           keeps the logs of all processes there

modes:
${Object.entries(modes)
  .map(([name, what]) => `  ${name.padEnd(20)} ${what}\n`)
  .join('')}`;

/** As the image's entry point, see bench/bench-cluster.ts. */
const node = `${process.execPath} --disable-sigusr1 --max-old-space-size-percentage=70 --max-semi-space-size=4`;
const sources = path.join(import.meta.dirname, '../../src/main.ts');

/** Reads the command line. @throws {Error} with one line for anything that cannot be run. */
export function parseOptions(argv: readonly string[]): KeptOptions | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      records: { type: 'string', default: '2000' },
      claims: { type: 'string', default: '500' },
      mode: { type: 'string', default: 'crash' },
      other: { type: 'string' },
      bundle: { type: 'string' },
      sidecar: { type: 'string' },
      timeout: { type: 'string', default: '5' },
      quiet: { type: 'string', default: '0' },
      cluster: { type: 'string', default: 'kubernetes' },
      logs: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const mode = oneOf('--mode', values.mode, Object.keys(modes) as Mode[]);
  if ((mode === 'other') !== (values.other !== undefined)) throw new Error('--mode other and --other need each other');
  if (values.bundle !== undefined && values.sidecar !== undefined) {
    throw new Error('--bundle and --sidecar exclude each other');
  }
  return {
    records: wholeNumber('--records', values.records),
    claims: wholeNumber('--claims', values.claims),
    mode,
    sidecar: values.sidecar ?? `${node} ${path.resolve(values.bundle ?? sources)}`,
    other: values.other,
    timeoutMs: wholeNumber('--timeout', values.timeout) * 1000,
    quietMs: wholeNumber('--quiet', values.quiet, 0) * 1000,
    cluster: oneOf('--cluster', values.cluster, ['sandbox', 'kubernetes']),
    logFolder: values.logs,
  };
}

function oneOf<T extends string>(flag: string, text: string, accepted: readonly T[]): T {
  const found = accepted.find((each) => each === text);
  if (found === undefined) throw new Error(`${flag}: ${JSON.stringify(text)} is not one of ${accepted.join(', ')}`);
  return found;
}

function wholeNumber(flag: string, text: string, least = 1): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
  if (!(number >= least)) throw new Error(`${flag}: ${JSON.stringify(text)} is no whole number of at least ${least}`);
  return number;
}
