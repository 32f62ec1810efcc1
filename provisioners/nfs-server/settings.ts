/** What the command line and the environment amount to, checked and in one place. */
import path from 'node:path';
import { type Flags, UsageError } from './flags.ts';

/** Where the server's address comes from: see `serverAddress`. */
export interface AddressSettings {
  readonly outOfCluster: boolean;
  readonly serverHostname: string;
  readonly podIp: string;
  readonly serviceName: string;
  readonly podNamespace: string;
  readonly nodeName: string;
  readonly nfsV3: boolean;
}

/** All settings of the program. */
export interface Settings {
  readonly provisionerName: string;
  readonly master: string;
  readonly kubeconfig: string;
  readonly mode: 'own-ganesha' | 'foreign-ganesha' | 'kernel';
  readonly gracePeriodS: number;
  readonly xfsQuota: boolean;
  readonly exportSubnet: string;
  /** Undefined: no limit. */
  readonly maxExports: number | undefined;
  readonly deviceBasedFsids: boolean;
  readonly nfsV3: boolean;
  readonly leaderElect: boolean;
  readonly intentJournal: 'lease' | 'off';
  /** How the server is watched; undefined: it is not. */
  readonly probe: { readonly intervalMs: number; readonly silentMs: number } | undefined;
  readonly httpEndpoint: string;
  readonly verbosity: number;
  readonly address: AddressSettings;
  readonly paths: {
    readonly exportDirectory: string;
    readonly config: string;
    readonly log: string;
    readonly pid: string;
    readonly identity: string;
    readonly projects: string;
    readonly busSocket: string;
    readonly kernelExports: string;
  };
}

/** @throws {UsageError} when flags do not fit together; the message names them. */
export function readSettings(flags: Flags, environment: Record<string, string | undefined>): Settings {
  checkName(flags.provisioner);
  const outOfCluster = flags.master !== '' || flags.kubeconfig !== '';
  if (flags['run-server'] && !flags['use-ganesha']) {
    throw new UsageError('-run-server=true needs -use-ganesha=true: only ganesha can be started');
  }
  const gracePeriodS = flags['grace-period'];
  if (gracePeriodS < 0 || gracePeriodS > 180) {
    throw new UsageError(`-grace-period ${gracePeriodS} is not between 0 and 180 seconds`);
  }
  if (gracePeriodS !== 90 && !(flags['run-server'] && flags['use-ganesha'])) {
    throw new UsageError(`-grace-period ${gracePeriodS} needs -run-server=true and -use-ganesha=true`);
  }
  if (flags['server-hostname'] !== '' && !outOfCluster) {
    throw new UsageError(
      '-server-hostname is for a provisioner outside of the cluster: give -kubeconfig or -master, too',
    );
  }
  const exportDirectory = exportDirectoryOf(flags['export-dir']);
  const inExports = (given: string, name: string): string => (given === '' ? path.join(exportDirectory, name) : given);
  return {
    provisionerName: flags.provisioner,
    master: flags.master,
    kubeconfig: flags.kubeconfig,
    mode: !flags['use-ganesha'] ? 'kernel' : flags['run-server'] ? 'own-ganesha' : 'foreign-ganesha',
    gracePeriodS,
    xfsQuota: flags['enable-xfs-quota'],
    exportSubnet: flags['export-subnet'],
    maxExports: flags['max-exports'] < 0 ? undefined : flags['max-exports'],
    deviceBasedFsids: flags['device-based-fsids'],
    nfsV3: flags.nfsv3,
    leaderElect: flags['leader-elect'],
    intentJournal: journalOf(flags['intent-journal']),
    probe: probeOf(flags['probe-interval'], flags['probe-timeout']),
    httpEndpoint: flags['http-endpoint'],
    verbosity: flags.v,
    address: {
      outOfCluster,
      serverHostname: flags['server-hostname'],
      podIp: environment['POD_IP'] ?? '',
      serviceName: environment['SERVICE_NAME'] ?? '',
      podNamespace: environment['POD_NAMESPACE'] ?? '',
      nodeName: environment['NODE_NAME'] ?? '',
      nfsV3: flags.nfsv3,
    },
    paths: {
      exportDirectory,
      config: inExports(flags['ganesha-config'], 'vfs.conf'),
      log: inExports(flags['ganesha-log'], 'ganesha.log'),
      pid: flags['ganesha-pid'],
      identity: path.join(exportDirectory, 'nfs-provisioner.identity'),
      projects: path.join(exportDirectory, 'projects'),
      busSocket: flags['dbus-socket'],
      kernelExports: flags['exports-file'],
    },
  };
}

/** A qualified name (Kubernetes page "Labels and Selectors", "Syntax"), compared in lower case. */
function checkName(provisionerName: string): void {
  const [name = '', prefix, ...more] = provisionerName.toLowerCase().split('/').toReversed();
  const isName = name.length <= 63 && /^[a-z0-9]([-a-z0-9_.]*[a-z0-9])?$/.test(name);
  const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
  const isPrefix =
    prefix === undefined || (prefix.length <= 253 && new RegExp(`^${label}(\\.${label})*$`).test(prefix));
  if (isName && isPrefix && more.length === 0) return;
  throw new UsageError(
    `-provisioner ${JSON.stringify(provisionerName)} is not a qualified name: use one such as example.com/nfs`,
  );
}

/** It stands in the configuration of ganesha and in commands of `xfs_quota`, which know no quoting. */
function exportDirectoryOf(given: string): string {
  if (!path.isAbsolute(given) || !/^[\w./-]+$/.test(given)) {
    throw new UsageError(
      `-export-dir ${JSON.stringify(given)} is not usable: give an absolute path of letters, digits and ._-/`,
    );
  }
  return path.resolve(given);
}

function journalOf(given: string): Settings['intentJournal'] {
  if (given === 'lease' || given === 'off') return given;
  const reason =
    given === 'configmap'
      ? 'is not possible: everybody with the role "view" can read ConfigMaps; use lease, or off'
      : 'is neither lease nor off';
  throw new UsageError(`-intent-journal ${JSON.stringify(given)} ${reason}`);
}

function probeOf(intervalS: number, timeoutS: number): Settings['probe'] {
  if (intervalS === 0) return undefined;
  if (intervalS < 0 || timeoutS <= intervalS || timeoutS > 3600) {
    throw new UsageError(
      `-probe-interval ${intervalS} and -probe-timeout ${timeoutS} do not fit: give an interval of 0 for no probes, or a ` +
        'timeout that is longer than the interval, up to 3600 seconds',
    );
  }
  return { intervalMs: intervalS * 1000, silentMs: timeoutS * 1000 };
}
