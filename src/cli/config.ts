import { millisecondsOf } from '../base/go-duration.ts';
import type { FeatureGates } from './feature-gates.ts';
import { listedFiles } from '../kube/credentials/kubeconfig-files.ts';
import { fatalExit, failureExit } from '../run/exit.ts';
import type { FlagName, FlagValues } from './flags.ts';
import type { LoggingConfig } from './logging.ts';

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

/** Where the Kubernetes API is and how fast we may talk to it. */
export interface KubernetesConfig {
  /** Empty: none. Those of `KUBECONFIG` have already replaced the flag's value. */
  readonly kubeconfigFiles: readonly string[];
  readonly kubeconfigFromEnvironment: boolean;
  /** Empty: none. */
  readonly masterUrl: string;
  /** null: no limit on our side. */
  readonly rateLimit: RateLimit | null;
  readonly capacityRateLimit: RateLimit | null;
}

/** How volumes are named, made and retried. */
interface ProvisioningConfig {
  readonly volumeNamePrefix: string;
  /** Characters of the UID to keep, -1 for all; other values from outside 0 to 32 fail each claim. */
  readonly volumeNameUuidLength: number;
  /** Empty: none. */
  readonly defaultFsType: string;
  readonly extraCreateMetadata: boolean;
  readonly controllerPublishReadOnly: boolean;
  readonly preventVolumeModeConversion: boolean;
  readonly strictTopology: boolean;
  readonly immediateTopology: boolean;
  readonly workerThreads: number;
  readonly cloningProtectionThreads: number;
  readonly retryIntervalStartMs: number;
  readonly retryIntervalMaxMs: number;
  /** null: no sweep, and its API is not looked up. */
  readonly snapshotSweepIntervalMs: number | null;
}

/** Storage capacity publishing. */
export interface CapacityConfig {
  readonly namespace: string;
  /** Empty if no owner is wanted. */
  readonly podName: string;
  /** Steps up from the Pod; negative: no owner. */
  readonly ownerRefLevel: number;
  readonly threads: number;
  readonly pollIntervalMs: number;
  readonly forImmediateBinding: boolean;
}

/** Deployment beside the driver on each node. */
interface NodeDeploymentConfig {
  readonly nodeName: string;
  readonly immediateBinding: boolean;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

/** Leader election through a Lease. */
export interface LeaderElectionConfig {
  /** From the flag, else from `POD_NAMESPACE`; empty: the service account's, else `default`. */
  readonly namespace: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** The Leases in which volumes in progress are recorded. */
interface IntentJournalConfig {
  /** That of the Lease of the leader election, also without it. */
  readonly namespace: string;
  /** The Pod's, where a flag names another one: the journal is there without the flag. */
  readonly podNamespace?: string;
  /** Name of the node, where it is known though this is no node deployment: in one the journal is named after it. */
  readonly nodeName?: string;
}

/** The HTTP endpoint. */
export interface HttpConfig {
  /** In Go's listen form, already checked. */
  readonly address: string;
  readonly metricsPath: string;
  /** Whether `/healthz/leader-election` is served. */
  readonly health: boolean;
  readonly profiles: boolean;
  readonly statusPage: boolean;
}

/** The whole configuration from command line and environment, checked and frozen. null: the part is off. */
export interface Config {
  readonly argv0: string;
  readonly logging: LoggingConfig;
  readonly featureGates: FeatureGates;
  readonly csiAddress: string;
  /** Deadline of each CSI call; 0 or less fails every call. */
  readonly csiTimeoutMs: number;
  /** Max time without a connection to the driver after the first one; null: no limit. */
  readonly csiReconnectLimitMs: number | null;
  readonly kubernetes: KubernetesConfig;
  readonly provisioning: ProvisioningConfig;
  readonly capacity: CapacityConfig | null;
  readonly nodeDeployment: NodeDeploymentConfig | null;
  readonly leaderElection: LeaderElectionConfig | null;
  readonly intentJournal: IntentJournalConfig | null;
  /** From the end of an audit to the start of the next; null: there is none. */
  readonly auditIntervalMs: number | null;
  readonly http: HttpConfig | null;
}

/** What `buildConfig` starts from: everything before it has been checked. */
interface ConfigInput {
  readonly argv0: string;
  readonly values: FlagValues;
  readonly given: ReadonlySet<FlagName>;
  readonly environment: Environment;
  readonly logging: LoggingConfig;
  readonly featureGates: FeatureGates;
}

/**
 * Builds the configuration from flags and environment; `checkConfig` then checks what its values mean.
 *
 * @throws {ExitError} with the code the Go sidecar would end with, for values that contradict each other.
 */
export function buildConfig(input: ConfigInput): Config {
  const { values } = input;
  const reconnectLimit = values['csi-reconnect-limit'];
  const config: Config = {
    argv0: input.argv0,
    logging: input.logging,
    featureGates: input.featureGates,
    csiAddress: values['csi-address'],
    csiTimeoutMs: millisecondsOf(values.timeout),
    csiReconnectLimitMs: reconnectLimit > 0n ? millisecondsOf(reconnectLimit) : null,
    nodeDeployment: nodeDeploymentOf(input),
    http: httpOf(values),
    kubernetes: kubernetesOf(input),
    provisioning: provisioningOf(values),
    capacity: capacityOf(input),
    leaderElection: leaderElectionOf(input),
    intentJournal: intentJournalOf(input),
    auditIntervalMs: auditIntervalOf(values),
  };
  return deepFreeze(config);
}

/** The node's name, required in node deployment; the text of the failure is a contract, wrong flag name included. */
export function checkNodeName(values: FlagValues, environment: Environment): string {
  const nodeName = environment.NODE_NAME ?? '';
  if (values['node-deployment'] && nodeName === '') {
    throw fatalExit('The NODE_NAME environment variable must be set when using --enable-node-deployment.');
  }
  return nodeName;
}

function nodeDeploymentOf({ values, environment }: ConfigInput): NodeDeploymentConfig | null {
  const nodeName = checkNodeName(values, environment);
  if (!values['node-deployment']) return null;
  return {
    nodeName,
    immediateBinding: values['node-deployment-immediate-binding'],
    baseDelayMs: millisecondsOf(values['node-deployment-base-delay']),
    maxDelayMs: millisecondsOf(values['node-deployment-max-delay']),
  };
}

function httpOf(values: FlagValues): HttpConfig | null {
  const endpoint = values['http-endpoint'];
  const metricsAddress = values['metrics-address'];
  if (endpoint !== '' && metricsAddress !== '') {
    throw failureExit('only one of `--metrics-address` and `--http-endpoint` can be set.');
  }
  if (endpoint === '' && metricsAddress === '') return null;
  return {
    address: endpoint === '' ? metricsAddress : endpoint,
    metricsPath: values['metrics-path'],
    health: values['leader-election'] && endpoint !== '',
    profiles: values['enable-pprof'],
    statusPage: values['status-page'],
  };
}

function kubernetesOf({ values, given, environment }: ConfigInput): KubernetesConfig {
  const listed = listedFiles(environment.KUBECONFIG);
  const capacityLimit = rateLimitOf(values, given, ['kube-api-capacity-qps', 'kube-api-capacity-burst']);
  return {
    kubeconfigFiles: listed.length > 0 || values.kubeconfig === '' ? listed : [values.kubeconfig],
    kubeconfigFromEnvironment: listed.length > 0,
    masterUrl: values.master,
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

function provisioningOf(values: FlagValues): ProvisioningConfig {
  const sweepInterval = values['snapshot-orphan-sweep-interval'];
  return {
    volumeNamePrefix: values['volume-name-prefix'],
    volumeNameUuidLength: values['volume-name-uuid-length'],
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
    snapshotSweepIntervalMs: sweepInterval > 0n ? millisecondsOf(sweepInterval) : null,
  };
}

function capacityOf({ values, environment }: ConfigInput): CapacityConfig | null {
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
    podName,
    ownerRefLevel,
    threads: values['capacity-threads'],
    pollIntervalMs: millisecondsOf(values['capacity-poll-interval']),
    forImmediateBinding: values['capacity-for-immediate-binding'],
  };
}

function leaderElectionOf(input: ConfigInput): LeaderElectionConfig | null {
  const { values } = input;
  if (!values['leader-election']) return null;
  return {
    namespace: lockNamespaceOf(input),
    leaseDurationMs: millisecondsOf(values['leader-election-lease-duration']),
    renewDeadlineMs: millisecondsOf(values['leader-election-renew-deadline']),
    retryPeriodMs: millisecondsOf(values['leader-election-retry-period']),
    labels: Object.fromEntries(values['leader-election-labels']),
  };
}

function intentJournalOf(input: ConfigInput): IntentJournalConfig | null {
  const { values, environment } = input;
  if (values['intent-journal'] === 'off') return null;
  const { POD_NAMESPACE: podNamespace = '', NODE_NAME: nodeName = '' } = environment;
  return {
    namespace: lockNamespaceOf(input),
    ...(values['leader-election-namespace'] !== '' && podNamespace !== '' && { podNamespace }),
    ...(!values['node-deployment'] && nodeName !== '' && { nodeName }),
  };
}

/** @throws {ExitError} code 1. */
function auditIntervalOf(values: FlagValues): number | null {
  const interval = values['audit-interval'];
  if (interval < 0n) throw failureExit('--audit-interval must not be negative. 0: no audit.');
  return interval === 0n ? null : Math.max(1, millisecondsOf(interval));
}

function lockNamespaceOf({ values, environment }: ConfigInput): string {
  return values['leader-election-namespace'] || (environment.POD_NAMESPACE ?? '');
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
