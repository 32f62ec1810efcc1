import { InvalidArgumentError, Option } from 'commander';
import type { ClusterTarget } from '../../test/support/cluster.ts';
import { goHelp } from '../../test/support/go-sidecar/go-sidecar.ts';
import { scriptCommand, wholeNumber } from '../script-command.ts';

/** What can be switched on and off, with what it does. */
export const disturbances = {
  deletions: 'claims are deleted, half of them within 1.5 s',
  admin: 'volumes are set to Retain, and removed or imported under another name, also while the sidecar is down',
  driver: 'driver responds late, or fails before or after it has done the work',
  late: 'driver creates volumes up to 1.4 times --timeout late',
  'driver-restart': 'the driver is killed',
  api: 'API server fails, responds late, and loses responses and watches (sandbox)',
  'api-restart': 'the API server is killed',
  'api-down': 'the API server is restarted while the sidecar is down',
  terminate: 'some sidecars get SIGTERM in place of SIGKILL',
  overlap: 'the successor starts while the predecessor still runs',
  freeze: 'the sidecar is stopped for some seconds and goes on afterwards; with an election it has lost the lease then',
  pause: 'the sidecar is stopped for longer than its lease, nobody takes over, and it goes on',
  lease: 'somebody else takes the lease',
  namespaces: 'namespaces are deleted together with their secrets',
  classes: 'classes are recreated with other parameters',
  prefix: '--volume-name-prefix changes',
  collide: '--volume-name-uuid-length is so short that names collide',
  back: 'back to --intent-journal=off for a while, and on again; only with --journal',
  other: 'another sidecar runs for a while; only with --other',
} as const;

export type Disturbance = keyof typeof disturbances;

export interface ChaosOptions {
  claims: number;
  /** SIGKILLs. */
  kills: number;
  seed: string;
  cluster: ClusterTarget;
  /** No further claims and kills after so long. */
  maxMs: number;
  /** About how often the API server is restarted; short runs have it twice all the same, once while the sidecar is down. */
  apiRestartMs: number;
  election: boolean;
  /** Two sidecars at the same time until the end, as in a rolling update. */
  together: boolean;
  /** Value of --timeout; calls that respond late take up to 1.4 times as long. */
  timeoutMs: number;
  /** Value of --intent-journal; undefined: the flag is not passed. */
  journal: 'lease' | 'off' | undefined;
  disturbances: ReadonlySet<Disturbance>;
  /** Command of another sidecar, as words, or `go`. */
  other: string | undefined;
  /** Runs the bundle with the flags of the image. */
  bundle: boolean;
  /** Where logs are kept. */
  logFolder: string | undefined;
}

interface Values {
  claims: number;
  kills: number;
  minutes: number;
  apiMinutes: number;
  seed?: string;
  cluster: ClusterTarget;
  election: boolean;
  together: boolean;
  timeout: number;
  journal?: ChaosOptions['journal'];
  other?: string;
  only?: readonly Disturbance[];
  without?: readonly Disturbance[];
  bundle: boolean;
  logs?: string;
}

/** Reads the command line; an invalid one ends the process. */
export function parseOptions(argv: readonly string[]): ChaosOptions {
  const command = scriptCommand(
    'npm run chaos --',
    `Kills the sidecar at random moments while claims come and go and everything around it fails, and
counts at the end what was leaked, lost, destroyed, doubled or left pending, and what audit can
delete of the rest. Exit code 1 unless all of that is 0 and audit has deleted all that it reports as
leaked.`,
  )
    .option('--claims <N>', 'claims to create', wholeNumber(), 300)
    .option('--kills <N>', 'SIGKILLs', wholeNumber(), 25)
    .option('--minutes <N>', 'no further claims and kills after that time', wholeNumber(), 60)
    .option(
      '--api-minutes <N>',
      'about how often the API server is restarted; a restart makes it forget its history, and what was open then may end as unproved',
      wholeNumber(),
      40,
    )
    .option('--seed <TEXT>', 'repeats the choices of a run; default: the time')
    .addOption(new Option('--cluster <NAME>', 'cluster').choices(['sandbox', 'kubernetes']).default('sandbox'))
    .option('--no-election', 'without --leader-election')
    .option(
      '--together',
      'two sidecars at the same time until the end, whose names of volumes do not change; needs --no-election',
      false,
    )
    .option('--timeout <N>', 'seconds of --timeout; late calls take longer in proportion', wholeNumber(), 1)
    .addOption(
      new Option('--journal <VALUE>', 'value of --intent-journal; by default the flag is not passed').choices([
        'lease',
        'off',
      ]),
    )
    .option('--other <CMD>', `another sidecar, which runs now and then; its words are separated by blanks; ${goHelp}`)
    .option('--only <LIST>', 'these disturbances alone', list)
    .option('--without <LIST>', 'all but these disturbances', list)
    .option('--bundle', 'runs dist/csi-provisioner.js instead of the sources', false)
    .option(
      '--logs <DIR>',
      'keeps the logs of all processes in DIR; default: a temporary folder, deleted if the run is clean',
    )
    .addHelpText('after', `\nDisturbances:\n${described(disturbances)}`)
    .parse(argv, { from: 'user' });
  const {
    minutes,
    apiMinutes,
    timeout,
    seed = new Date().toISOString(),
    only = names,
    without = [],
    logs,
    ...values
  } = command.opts<Values>();
  const { election, together, cluster, journal, other } = values;
  if (together && election) {
    command.error('error: --together needs --no-election: a lease has one holder', { exitCode: 2 });
  }
  const chosen = new Set(only);
  for (const name of without) chosen.delete(name);
  if (!election) chosen.delete('lease');
  // Two at once that name volumes differently make two volumes of one claim, and nothing could prevent it.
  if (together) for (const name of ['overlap', 'prefix', 'collide'] as const) chosen.delete(name);
  if (cluster === 'kubernetes') chosen.delete('api');
  if (journal === undefined || journal === 'off') chosen.delete('back');
  if (other === undefined) chosen.delete('other');
  return {
    ...values,
    seed,
    maxMs: minutes * 60_000,
    apiRestartMs: apiMinutes * 60_000,
    timeoutMs: timeout * 1000,
    journal,
    disturbances: chosen,
    other,
    logFolder: logs,
  };
}

const names = Object.keys(disturbances) as Disturbance[];

function list(text: string): Disturbance[] {
  return text
    .split(',')
    .filter((name) => name !== '')
    .map((name) => {
      const found = names.find((each) => each === name);
      if (found !== undefined) return found;
      throw new InvalidArgumentError(`${JSON.stringify(name)} is not one of ${names.join(', ')}.`);
    });
}

/** Lines of a help text. */
export function described(choices: Readonly<Record<string, string>>): string {
  return Object.entries(choices)
    .map(([name, what]) => `  ${name.padEnd(20)} ${what}`)
    .join('\n');
}
