import { millisecondsOf } from '../base/go-duration.ts';
import { applyFeatureGates } from './feature-gates.ts';
import { listedFiles } from '../kube/credentials/kubeconfig-files.ts';
import { fatalExit, failureExit } from '../run/exit.ts';
import type { FlagName, FlagValues } from './flags.ts';
import { checkLogging } from './logging.ts';

/** The environment variables that are read. */
export interface Environment {
  readonly KUBECONFIG?: string | undefined;
  readonly NODE_NAME?: string | undefined;
  readonly NAMESPACE?: string | undefined;
  readonly POD_NAME?: string | undefined;
  readonly POD_NAMESPACE?: string | undefined;
}

/** A token bucket that starts full: `burst` requests at once, then `perSecond` on average. */
export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

/** What `buildConfig` starts from. */
interface ConfigInput {
  readonly argv0: string;
  readonly values: FlagValues;
  readonly given: ReadonlySet<FlagName>;
  readonly environment: Environment;
}

/** The whole configuration from command line and environment, checked and frozen. null: the part is off. */
export type Config = ReturnType<typeof buildConfig>;
export type KubernetesConfig = Config['kubernetes'];
export type CapacityConfig = NonNullable<Config['capacity']>;
export type LeaderElectionConfig = NonNullable<Config['leaderElection']>;
export type HttpConfig = NonNullable<Config['http']>;

/**
 * Builds the configuration from flags and environment; `checkConfig` then checks what its values mean.
 *
 * @throws {ExitError} with the code the Go sidecar would end with, for values that contradict each other.
 */
export function buildConfig(input: ConfigInput) {
  const { values, argv0 } = input;
  const logging = checkLogging(values);
  const { gates: featureGates } = applyFeatureGates(values['feature-gates']);
  const reconnectLimit = values['csi-reconnect-limit'];
  return deepFreeze({
    argv0,
    logging,
    featureGates,
    csiAddress: values['csi-address'],
    /** Deadline of each CSI call; 0 or less fails every call. */
    csiTimeoutMs: millisecondsOf(values.timeout),
    /** Max time without a connection to the driver after the first one; null: no limit. */
    csiReconnectLimitMs: reconnectLimit > 0n ? millisecondsOf(reconnectLimit) : null,
    nodeDeployment: nodeDeploymentOf(input),
    http: httpOf(values),
    kubernetes: kubernetesOf(input),
    provisioning: provisioningOf(values),
    capacity: capacityOf(input),
    leaderElection: leaderElectionOf(input),
    intentJournal: intentJournalOf(input),
    /** From the end of an audit to the start of the next; null: there is none. */
    auditIntervalMs: auditIntervalOf(values),
  });
}

/** The node's name, required in node deployment; the text of the failure is a contract, wrong flag name included. */
export function checkNodeName(values: FlagValues, environment: Environment): string {
  const nodeName = environment.NODE_NAME ?? '';
  if (values['node-deployment'] && nodeName === '') {
    throw fatalExit('The NODE_NAME environment variable must be set when using --enable-node-deployment.');
  }
  return nodeName;
}

/** Deployment beside the driver on each node. */
function nodeDeploymentOf({ values, environment }: ConfigInput) {
  const nodeName = checkNodeName(values, environment);
  if (!values['node-deployment']) return null;
  return {
    nodeName,
    immediateBinding: values['node-deployment-immediate-binding'],
    baseDelayMs: millisecondsOf(values['node-deployment-base-delay']),
    maxDelayMs: millisecondsOf(values['node-deployment-max-delay']),
  };
}

function httpOf(values: FlagValues) {
  const endpoint = values['http-endpoint'];
  const metricsAddress = values['metrics-address'];
  if (endpoint !== '' && metricsAddress !== '') {
    throw failureExit('only one of `--metrics-address` and `--http-endpoint` can be set.');
  }
  if (endpoint === '' && metricsAddress === '') return null;
  return {
    /** In Go's listen form; `checkConfig` checks it. */
    address: endpoint === '' ? metricsAddress : endpoint,
    metricsPath: values['metrics-path'],
    /** Whether `/healthz/leader-election` is served. */
    health: values['leader-election'] && endpoint !== '',
    profiles: values['enable-pprof'],
    statusPage: values['status-page'],
  };
}

/** Where the Kubernetes API is and how fast we may talk to it. */
function kubernetesOf({ values, given, environment }: ConfigInput) {
  const listed = listedFiles(environment.KUBECONFIG);
  const capacityLimit = rateLimitOf(values, given, ['kube-api-capacity-qps', 'kube-api-capacity-burst']);
  return {
    /** Empty: none. Those of `KUBECONFIG` have already replaced the flag's value. */
    kubeconfigFiles: listed.length > 0 || values.kubeconfig === '' ? listed : [values.kubeconfig],
    kubeconfigFromEnvironment: listed.length > 0,
    /** Empty: none. */
    masterUrl: values.master,
    /** null: no limit on our side. */
    rateLimit: rateLimitOf(values, given, ['kube-api-qps', 'kube-api-burst']),
    capacityRateLimit: values['enable-capacity'] ? capacityLimit : null,
  };
}

/** Without an explicit rate there is no limit: the API server's priority and fairness throttles better than a client can. */
function rateLimitOf(
  values: FlagValues,
  given: ReadonlySet<FlagName>,
  [qpsFlag, burstFlag]:
    readonly ['kube-api-qps', 'kube-api-burst'] | readonly ['kube-api-capacity-qps', 'kube-api-capacity-burst'],
): RateLimit | null {
  if (!given.has(qpsFlag)) return null;
  const perSecond = values[qpsFlag];
  const burst = values[burstFlag];
  if (perSecond === 0) return { perSecond: 5, burst: burst === 0 ? 10 : Math.max(burst, 1) };
  if (!(perSecond > 0) || perSecond === Infinity) return null;
  if (burst <= 0) {
    throw fatalExit(
      'Failed to create client: burst is required to be greater than 0 when RateLimiter is not set and QPS is set to ' +
        `greater than 0 (--${qpsFlag}=${perSecond}, --${burstFlag}=${burst})`,
    );
  }
  return { perSecond, burst };
}

/** How volumes are named, made and retried. */
function provisioningOf(values: FlagValues) {
  const sweepInterval = values['snapshot-orphan-sweep-interval'];
  return {
    volumeNamePrefix: values['volume-name-prefix'],
    /** Characters of the UID to keep, -1 for all; other values from outside 0 to 32 fail each claim. */
    volumeNameUuidLength: values['volume-name-uuid-length'],
    /** Empty: none. */
    defaultFsType: values['default-fstype'],
    extraCreateMetadata: values['extra-create-metadata'],
    controllerPublishReadOnly: values['controller-publish-readonly'],
    preventVolumeModeConversion: values['prevent-volume-mode-conversion'],
    strictTopology: values['strict-topology'],
    immediateTopology: values['immediate-topology'],
    workerThreads: values['worker-threads'],
    cloningProtectionThreads: values['cloning-protection-threads'],
    retryIntervalStartMs: millisecondsOf(values['retry-interval-start']),
    retryIntervalMaxMs: millisecondsOf(values['retry-interval-max']),
    /** null: no sweep, and its API is not looked up. */
    snapshotSweepIntervalMs: sweepInterval > 0n ? millisecondsOf(sweepInterval) : null,
  };
}

function capacityOf({ values, environment }: ConfigInput) {
  if (!values['enable-capacity']) return null;
  const namespace = environment.NAMESPACE ?? '';
  if (namespace === '') throw fatalExit('need NAMESPACE env variable for CSIStorageCapacity objects');
  const ownerRefLevel = values['capacity-ownerref-level'];
  const podName = ownerRefLevel < 0 ? '' : (environment.POD_NAME ?? '');
  if (ownerRefLevel >= 0 && podName === '') {
    throw fatalExit('need POD_NAME env variable to determine CSIStorageCapacity owner');
  }
  return {
    namespace,
    /** Empty if no owner is wanted. */
    podName,
    /** Steps up from the Pod; negative: no owner. */
    ownerRefLevel,
    threads: values['capacity-threads'],
    pollIntervalMs: millisecondsOf(values['capacity-poll-interval']),
    forImmediateBinding: values['capacity-for-immediate-binding'],
  };
}

function leaderElectionOf(input: ConfigInput) {
  const { values } = input;
  if (!values['leader-election']) return null;
  return {
    /** Empty: the service account's, else `default`. */
    namespace: lockNamespaceOf(input),
    leaseDurationMs: millisecondsOf(values['leader-election-lease-duration']),
    renewDeadlineMs: millisecondsOf(values['leader-election-renew-deadline']),
    retryPeriodMs: millisecondsOf(values['leader-election-retry-period']),
    labels: Object.fromEntries(values['leader-election-labels']),
  };
}

/** The Leases in which volumes in progress are recorded. */
function intentJournalOf(input: ConfigInput) {
  const { values, environment } = input;
  if (values['intent-journal'] === 'off') return null;
  const { POD_NAMESPACE: podNamespace = '', NODE_NAME: nodeName = '' } = environment;
  return {
    /** That of the Lease of the leader election, also without it. */
    namespace: lockNamespaceOf(input),
    /** The Pod's, where a flag names another one: the journal is there without the flag. */
    ...(values['leader-election-namespace'] !== '' && podNamespace !== '' && { podNamespace }),
    /** Name of the node, where it is known though this is no node deployment: in one the journal is named after it. */
    ...(!values['node-deployment'] && nodeName !== '' && { nodeName }),
  };
}

/** @throws {ExitError} code 1. */
function auditIntervalOf(values: FlagValues): number | null {
  const interval = values['audit-interval'];
  if (interval < 0n) throw failureExit('--audit-interval must not be negative. 0: no audit.');
  return interval === 0n ? null : Math.max(1, millisecondsOf(interval));
}

/** From the flag, else from `POD_NAMESPACE`. */
function lockNamespaceOf({ values, environment }: ConfigInput): string {
  return values['leader-election-namespace'] || (environment.POD_NAMESPACE ?? '');
}

type Frozen<T> = T extends object ? { readonly [Name in keyof T]: Frozen<T[Name]> } : T;

function deepFreeze<T extends object>(value: T): Frozen<T> {
  for (const part of Object.values(value) as unknown[]) if (typeof part === 'object' && part !== null) deepFreeze(part);
  return Object.freeze(value) as Frozen<T>;
}
