import path from 'node:path';
import { Option } from 'commander';
import type { ClusterTarget } from '../../test/support/cluster.ts';
import { goHelp } from '../../test/support/go-sidecar/go-sidecar.ts';
import { imageNode, programSource } from '../../test/support/program-file.ts';
import { scriptCommand, wholeNumber } from '../script-command.ts';
import { described } from './options.ts';

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

interface Values {
  records: number;
  claims: number;
  mode: Mode;
  other?: string;
  bundle?: string;
  sidecar?: string;
  timeout: number;
  quiet: number;
  cluster: ClusterTarget;
  logs?: string;
}

/** Reads the command line; an invalid one ends the process. */
export function parseOptions(argv: readonly string[]): KeptOptions {
  const command = scriptCommand(
    'npm run kept --',
    `Kills the sidecar while the intent journal has open records of volumes that are saved already. Then
an administrator sets these PersistentVolumes to Retain and deletes them and their claims, as for a
move to another cluster, and the sidecar starts again. That is repeated until enough records were
open at a kill. Exit code 1 if storage that was kept so has been deleted, or if a record is never
decided.`,
  )
    .option('--records <N>', 'open records of saved volumes, in sum of all kills', wholeNumber(), 2000)
    .option('--claims <N>', 'claims of one round', wholeNumber(), 500)
    .addOption(
      new Option('--mode <NAME>', 'what runs between the kill and the next start')
        .choices(Object.keys(modes))
        .default('crash'),
    )
    .option(
      '--other <CMD>',
      `command of the other sidecar, for --mode other; its words are separated by blanks; ${goHelp}`,
    )
    .option('--bundle <PATH>', 'runs that bundle, such as dist/csi-provisioner.js, instead of the sources')
    .addOption(new Option('--sidecar <CMD>', 'runs that command instead').conflicts('bundle'))
    .option('--timeout <SECONDS>', "value of the sidecar's --timeout", wholeNumber(), 5)
    .option('--quiet <SECONDS>', 'pause before each round, in which no PersistentVolume changes', wholeNumber(0), 0)
    .addOption(new Option('--cluster <NAME>', 'cluster').choices(['kubernetes', 'sandbox']).default('kubernetes'))
    .option('--logs <DIR>', 'keeps the logs of all processes there')
    .addHelpText('after', `\nModes:\n${described(modes)}`)
    .parse(argv, { from: 'user' });
  const { records, claims, mode, other, bundle, sidecar, timeout, quiet, cluster, logs } = command.opts<Values>();
  if ((mode === 'other') !== (other !== undefined)) {
    command.error('error: --mode other and --other need each other', { exitCode: 2 });
  }
  return {
    records,
    claims,
    mode,
    sidecar: sidecar ?? `${imageNode} ${path.resolve(bundle ?? programSource('csi-provisioner'))}`,
    other,
    timeoutMs: timeout * 1000,
    quietMs: quiet * 1000,
    cluster,
    logFolder: logs,
  };
}
