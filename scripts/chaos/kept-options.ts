import { parseArgs } from 'node:util';
import path from 'node:path';
import type { ClusterTarget } from '../../test/support/cluster.ts';
import { goHelp } from '../../test/support/go-sidecar/go-sidecar.ts';
import { imageNode, programSource } from '../../test/support/program-file.ts';
import { described, oneOf, wholeNumber } from './command-line.ts';

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
  cluster: ClusterTarget;
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
${described(modes)}`;

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
    sidecar: values.sidecar ?? `${imageNode} ${path.resolve(values.bundle ?? programSource('csi-provisioner'))}`,
    other: values.other,
    timeoutMs: wholeNumber('--timeout', values.timeout) * 1000,
    quietMs: wholeNumber('--quiet', values.quiet, 0) * 1000,
    cluster: oneOf('--cluster', values.cluster, ['sandbox', 'kubernetes']),
    logFolder: values.logs,
  };
}
