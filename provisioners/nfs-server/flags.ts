/** The command line, by the grammar of Go's `flag` package: one dash or two, booleans take a value only after `=`. */
import { parseGoBool } from '../../src/index.ts';

/** A command line that cannot be used; the message says what is wrong and, where there is one, the way out. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

interface Flag<T extends string | number | boolean> {
  readonly default: T;
  readonly usage: string;
}

const flag = <T extends string | number | boolean>(value: T, usage: string): Flag<T> => ({ default: value, usage });

/** Every flag. Those of the original come first, in its order. */
const flagTable = {
  provisioner: flag<string>('example.com/nfs', 'name of the provisioner: what classes have as `provisioner`'),
  master: flag<string>('', 'URL of the API server, if the provisioner runs outside of the cluster'),
  kubeconfig: flag<string>('', 'path of a kubeconfig, if the provisioner runs outside of the cluster'),
  'run-server': flag<boolean>(true, 'start and supervise NFS-Ganesha; needs use-ganesha'),
  'use-ganesha': flag<boolean>(true, 'export through NFS-Ganesha; false: through the NFS server of the kernel'),
  'grace-period': flag<number>(90, 'grace period of the server in seconds, 0 to 180'),
  'enable-xfs-quota': flag<boolean>(false, 'set a project quota of the requested size; needs XFS with prjquota'),
  'server-hostname': flag<string>('', 'server name on volumes, if the provisioner runs outside of the cluster'),
  'export-subnet': flag<string>('*', 'clients that may mount; for the NFS server of the kernel alone'),
  'max-exports': flag<number>(-1, 'number of volumes to serve; further claims wait; negative: no limit'),
  'device-based-fsids': flag<boolean>(true, 'whether file handles have the device in them (ganesha: fsid_device)'),
  'leader-elect': flag<boolean>(
    false,
    'provision only while holding the lock of the provisioner: a Lease and an Endpoints object, or one of them',
  ),
  'export-dir': flag<string>('/export', 'directory of the volumes'),
  'ganesha-config': flag<string>('', 'configuration of ganesha; default vfs.conf in the export directory'),
  'ganesha-log': flag<string>('', 'log of ganesha; default ganesha.log in the export directory'),
  'ganesha-pid': flag<string>('/var/run/ganesha.pid', 'file for the process id of ganesha'),
  'dbus-socket': flag<string>(
    '/var/run/dbus/system_bus_socket',
    'socket of the D-Bus through which ganesha is controlled',
  ),
  'exports-file': flag<string>('/etc/exports', 'exports of the NFS server of the kernel'),
  nfsv3: flag<boolean>(true, 'serve NFSv3 beside NFSv4, which needs rpcbind and rpc.statd'),
  'http-endpoint': flag<string>('', 'address for metrics, /healthz and /readyz, such as :8080; empty: none'),
  'intent-journal': flag<string>('lease', 'where volumes are recorded before they are created: lease or off'),
  'probe-interval': flag<number>(10, 'seconds between two probes of the server and of the export directory; 0: none'),
  'probe-timeout': flag<number>(30, 'seconds without a response after which the server is killed and started again'),
  v: flag<number>(0, 'verbosity of the log: 2 for calls, 5 for traces'),
  // of the original's logging library; accepted, without effect
  logtostderr: flag<boolean>(true, 'no effect: the log is on standard error'),
  alsologtostderr: flag<boolean>(false, 'no effect'),
  stderrthreshold: flag<string>('', 'no effect'),
  vmodule: flag<string>('', 'no effect'),
  log_dir: flag<string>('', 'no effect'),
  log_backtrace_at: flag<string>('', 'no effect'),
} as const;

/** The value of each flag. */
export type Flags = {
  readonly [Name in keyof typeof flagTable]: (typeof flagTable)[Name] extends Flag<infer T> ? T : never;
};

/**
 * Reads the arguments, without the name of the program.
 *
 * @returns undefined for `-h` and `-help`.
 * @throws {UsageError} for an unknown flag, a value that does not fit, and what is no flag.
 */
export function parseFlags(args: readonly string[]): Flags | undefined {
  const read = leadingFlags(args);
  const [unexpected] = read?.rest ?? [];
  if (unexpected === undefined) return read?.flags;
  throw new UsageError(`unexpected argument ${JSON.stringify(unexpected)}: flags begin with a dash`);
}

/**
 * As `parseFlags`, up to the first argument that is neither a flag nor its value, such as a subcommand.
 *
 * @returns the flags, and that argument with all behind it.
 */
export function leadingFlags(args: readonly string[]): { flags: Flags; rest: string[] } | undefined {
  const values: Record<string, string | number | boolean> = {};
  for (const [name, { default: value }] of Object.entries(flagTable)) values[name] = value;
  const rest = [...args];
  while (rest[0]?.startsWith('-') === true) {
    const argument = rest.shift() ?? '';
    if (argument === '--') break;
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(argument);
    if (match === null)
      throw new UsageError(`unexpected argument ${JSON.stringify(argument)}: flags begin with a dash`);
    const [, name = '', inline] = match;
    if (name === 'h' || name === 'help') return undefined;
    if (!Object.hasOwn(flagTable, name)) throw new UsageError(`flag provided but not defined: -${name}`);
    const { default: initial } = flagTable[name as keyof typeof flagTable];
    values[name] =
      typeof initial === 'boolean' ? readBoolean(name, inline) : readValue(name, initial, inline ?? rest.shift());
  }
  return { flags: values as unknown as Flags, rest };
}

function readBoolean(name: string, text = 'true'): boolean {
  try {
    return parseGoBool(text);
  } catch (error) {
    const message = `invalid boolean value ${JSON.stringify(text)} for -${name}: use true or false`;
    throw new UsageError(message, { cause: error });
  }
}

function readValue(name: string, initial: string | number, text: string | undefined): string | number {
  if (text === undefined) throw new UsageError(`flag needs an argument: -${name}`);
  if (typeof initial === 'string') return text;
  const value = /^[+-]?\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value))
    throw new UsageError(`invalid value ${JSON.stringify(text)} for flag -${name}: use a whole number`);
  return value;
}

/** The text of `-help`. */
export function usageText(): string {
  const lines = Object.entries(flagTable).map(([name, { default: value, usage }]) => {
    const initial = value === '' ? '' : ` (default ${JSON.stringify(value)})`;
    return `  -${name}\n    \t${usage}${initial}`;
  });
  return `Usage of nfs-provisioner:\n${lines.join('\n')}\nSubcommand, behind the flags: audit (see nfs-provisioner audit --help)\n`;
}
