import { parseArgs } from 'node:util';
import type { ClusterTarget } from '../../test/support/cluster.ts';
import { goHelp } from '../../test/support/go-sidecar/go-sidecar.ts';
import { described, oneOf, wholeNumber } from './command-line.ts';

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

export const usage = `npm run chaos -- [flags]

Kills the sidecar at random moments while claims come and go and everything around it fails, and counts at the end what
was leaked, lost, destroyed, doubled or left pending, and what audit can delete of the rest. Exit code 1 unless all of that is 0
and audit has deleted all that it reports as leaked.

  --claims N           claims to create, default 300
  --kills N            SIGKILLs, default 25
  --minutes N          no further claims and kills after that time, default 60
  --api-minutes N      about how often the API server is restarted, default 40; a restart makes it forget its history, and what was
                       open then may end as unproved
  --seed TEXT          repeats the choices of a run, default: the time
  --cluster NAME       sandbox (default) or kubernetes
  --no-election        without --leader-election
  --together           two sidecars at the same time until the end, whose names of volumes do not change; needs --no-election
  --timeout N          seconds of --timeout, default 1; late calls take longer in proportion
  --journal VALUE      value of --intent-journal; by default the flag is not passed
  --other CMD          another sidecar, which runs now and then; its words are separated by blanks;
                       ${goHelp}
  --only LIST          these disturbances alone
  --without LIST       all but these disturbances
  --bundle             runs dist/csi-provisioner.js instead of the sources
  --logs DIR           keeps the logs of all processes in DIR (default: a temporary folder, deleted if the run is clean)

disturbances:
${described(disturbances)}`;

/** Reads the command line. @throws {Error} with one line for anything that cannot be run. */
export function parseOptions(argv: readonly string[]): ChaosOptions | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    allowNegative: true,
    options: {
      claims: { type: 'string', default: '300' },
      kills: { type: 'string', default: '25' },
      minutes: { type: 'string', default: '60' },
      'api-minutes': { type: 'string', default: '40' },
      seed: { type: 'string', default: new Date().toISOString() },
      cluster: { type: 'string', default: 'sandbox' },
      election: { type: 'boolean', default: true },
      together: { type: 'boolean', default: false },
      timeout: { type: 'string', default: '1' },
      journal: { type: 'string' },
      other: { type: 'string' },
      only: { type: 'string' },
      without: { type: 'string' },
      bundle: { type: 'boolean', default: false },
      logs: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const cluster = oneOf('--cluster', values.cluster, ['sandbox', 'kubernetes']);
  const journal = values.journal === undefined ? undefined : oneOf('--journal', values.journal, journals);
  const chosen = new Set(values.only === undefined ? names : list('--only', values.only));
  for (const name of values.without === undefined ? [] : list('--without', values.without)) chosen.delete(name);
  if (!values.election) chosen.delete('lease');
  if (values.together && values.election) throw new Error('--together needs --no-election: a lease has one holder');
  // Two at once that name volumes differently make two volumes of one claim, and nothing could prevent it.
  if (values.together) for (const name of ['overlap', 'prefix', 'collide'] as const) chosen.delete(name);
  if (cluster === 'kubernetes') chosen.delete('api');
  if (journal === undefined || journal === 'off') chosen.delete('back');
  if (values.other === undefined) chosen.delete('other');
  return {
    claims: wholeNumber('--claims', values.claims),
    kills: wholeNumber('--kills', values.kills),
    maxMs: wholeNumber('--minutes', values.minutes) * 60_000,
    apiRestartMs: wholeNumber('--api-minutes', values['api-minutes']) * 60_000,
    seed: values.seed,
    cluster,
    election: values.election,
    together: values.together,
    timeoutMs: wholeNumber('--timeout', values.timeout) * 1000,
    journal,
    disturbances: chosen,
    other: values.other,
    bundle: values.bundle,
    logFolder: values.logs,
  };
}

const names = Object.keys(disturbances) as Disturbance[];
const journals = ['lease', 'off'] as const;

function list(flag: string, text: string): Disturbance[] {
  return text
    .split(',')
    .filter((name) => name !== '')
    .map((name) => oneOf(flag, name, names));
}
