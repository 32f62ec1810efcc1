/** The command line: the logging flags of glog, which is all that there ever was. */
import type { LogLevel } from '../../src/index.ts';

/** A flag that does not exist, or a value it does not take. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Accepted, so that manifests keep working, and without effect: everything goes to standard error. */
const withoutEffect = new Set([
  'logtostderr',
  'alsologtostderr',
  'stderrthreshold',
  'log_dir',
  'log_backtrace_at',
  'vmodule',
]);
/** These need no value: `-logtostderr`. */
const switches = new Set(['logtostderr', 'alsologtostderr']);

/** The text of `-help`. */
export const usageText = `Usage of nfs-subdir-external-provisioner:
  audit
    \tas the first argument: compare directories with PersistentVolumes (audit --help)
  -v
    \tverbosity of the log: 4 for what is done in detail, 6 for everything (default 0)
  -logtostderr, -alsologtostderr, -stderrthreshold, -vmodule, -log_dir, -log_backtrace_at
    \tno effect: the log is on standard error

Environment:
  NFS_SERVER
    \tserver as it is written into PersistentVolumes (required)
  NFS_PATH
    \texported directory, an absolute path (required)
  PROVISIONER_NAME
    \tname of the provisioner: what classes have as \`provisioner\` (required)
  ENABLE_LEADER_ELECTION
    \tprovision only while holding the lock of the provisioner (default true)
  KUBECONFIG
    \tpath of a kubeconfig, if the provisioner runs outside of the cluster
  POD_NAMESPACE
    \tnamespace of the lock (default: that of the Pod)
  MOUNT_POINT
    \twhere the export is mounted (default "/persistentvolumes")
  HTTP_ENDPOINT
    \taddress for metrics, /healthz and /readyz, such as :8080; empty: none
`;

/**
 * The level to log at: `-v=4` shows what is done in detail, `-v=6` everything. Flags have one dash or two, and their value
 * follows after `=` or as the next argument.
 *
 * @returns undefined for `-h` and `-help`.
 * @throws {UsageError} for any other argument.
 */
export function logLevel(args: readonly string[]): LogLevel | undefined {
  let verbosity = 0;
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, name = '', value] = /^--?([a-z_]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (name === 'h' || name === 'help') return undefined;
    if (name === 'v') verbosity = wholeNumber(value ?? rest.shift());
    else if (!withoutEffect.has(name)) throw new UsageError(`flag provided but not defined: ${JSON.stringify(arg)}`);
    else if (value === undefined && !switches.has(name)) rest.shift();
  }
  return verbosity >= 6 ? 'trace' : verbosity >= 4 ? 'debug' : 'info';
}

function wholeNumber(text: string | undefined): number {
  if (text === undefined || !/^\d+$/.test(text)) {
    throw new UsageError(`invalid value ${JSON.stringify(text ?? '')} for flag -v: use a whole number`);
  }
  return Number(text);
}
