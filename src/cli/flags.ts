/**
 * The one table of flags: parser, help and docs/flags.md are made from it.
 */

/** How a flag's value is read. The grammar of each is in `parse-value.ts`. */
export type FlagKind =
  | 'string'
  | 'bool'
  | 'duration'
  | 'int'
  | 'uint'
  | 'float'
  | 'float32'
  | 'verbosity'
  | 'quantity'
  | 'gates'
  | 'labels'
  | 'vmodule'
  | 'journal'
  | 'unused-bool';

/** Headings of the help, in its order. */
export const flagGroups = {
  driver: 'CSI driver',
  kubernetes: 'Kubernetes API',
  provisioning: 'Provisioning',
  topology: 'Topology',
  capacity: 'Storage capacity',
  node: 'Deployment on every node',
  election: 'Leader election',
  http: 'Metrics and health',
  logging: 'Logging',
  general: 'General',
} as const;

type FlagGroup = keyof typeof flagGroups;

/** One flag. */
export interface FlagSpec {
  readonly kind: FlagKind;
  /** As it would be written on the command line; read by the same parser. */
  readonly default: string;
  /** Shown instead of `default` where the default is no plain value. */
  readonly defaultNote?: string;
  /**
   * `P` for flags that explain a bad value, `G` for those the Go sidecar imports from a Go flag set, which only say
   * `parse error`. Differs in error texts, nothing else.
   */
  readonly class: 'P' | 'G';
  readonly group: FlagGroup;
  /** Placeholder of the value in help. Booleans have none. */
  readonly value?: string;
  readonly description: string;
  readonly shorthand?: 'v';
  /** What to use instead. */
  readonly deprecated?: string;
  /** Accepted so that existing deployments start, without effect here. */
  readonly withoutEffect?: true;
  /** The release that brought the flag: `go` for what the Go sidecar v6.4 has, else our version. */
  readonly since: 'go' | `v${string}`;
}

/** `--log-*-split-stream`, an alpha option of the Go sidecar whose feature gate cannot be switched on. */
const splitStream = {
  kind: 'bool',
  default: 'false',
  class: 'P',
  group: 'logging',
  description: 'Only false is accepted.',
  withoutEffect: true,
  since: 'go',
} as const satisfies FlagSpec;

/** `--log-*-info-buffer-size`, an alpha option like the one above. */
const infoBufferSize = {
  kind: 'quantity',
  default: '0',
  class: 'P',
  group: 'logging',
  value: 'quantity',
  description: 'Only 0 is accepted.',
  withoutEffect: true,
  since: 'go',
} as const satisfies FlagSpec;

/** Every flag by its name, in the order of help within each group. */
export const flagTable = {
  'csi-address': {
    kind: 'string',
    default: '/run/csi/socket',
    class: 'G',
    group: 'driver',
    value: 'path',
    description: 'Socket of the CSI driver: an absolute path, or unix:// with one.',
    since: 'go',
  },
  timeout: {
    kind: 'duration',
    default: '10s',
    class: 'P',
    group: 'driver',
    value: 'duration',
    description: 'Deadline of every single call to the CSI driver.',
    since: 'go',
  },
  'csi-reconnect-limit': {
    kind: 'duration',
    default: '0s',
    defaultNote: 'none',
    class: 'P',
    group: 'driver',
    value: 'duration',
    description: 'How long a driver that went away may stay away before the process ends with code 1. 0: no limit.',
    since: 'v0.1.0',
  },
  kubeconfig: {
    kind: 'string',
    default: '',
    class: 'G',
    group: 'kubernetes',
    value: 'path',
    description: 'Path of a kubeconfig file. A KUBECONFIG variable wins. Neither: the in-cluster configuration.',
    since: 'go',
  },
  master: {
    kind: 'string',
    default: '',
    class: 'P',
    group: 'kubernetes',
    value: 'url',
    description:
      'URL of the API server. With a kubeconfig it replaces the server named there; alone, no credentials are used.',
    since: 'go',
  },
  'kube-api-qps': {
    kind: 'float',
    default: '5',
    defaultNote: 'no limit',
    class: 'G',
    group: 'kubernetes',
    value: 'number',
    description: 'Limit of requests per second. Negative: no limit.',
    since: 'go',
  },
  'kube-api-burst': {
    kind: 'int',
    default: '10',
    class: 'G',
    group: 'kubernetes',
    value: 'number',
    description: 'Requests that may go out at once when --kube-api-qps sets a limit.',
    since: 'go',
  },
  'kube-api-capacity-qps': {
    kind: 'float32',
    default: '1',
    defaultNote: 'no limit',
    class: 'P',
    group: 'kubernetes',
    value: 'number',
    description: 'Limit of requests per second for storage capacity alone. Negative: no limit.',
    since: 'go',
  },
  'kube-api-capacity-burst': {
    kind: 'int',
    default: '5',
    class: 'P',
    group: 'kubernetes',
    value: 'number',
    description: 'Requests that may go out at once when --kube-api-capacity-qps sets a limit.',
    since: 'go',
  },
  'volume-name-prefix': {
    kind: 'string',
    default: 'pvc',
    class: 'P',
    group: 'provisioning',
    value: 'text',
    description: 'Volumes are named <prefix>-<UID of the claim>.',
    since: 'go',
  },
  'volume-name-uuid-length': {
    kind: 'int',
    default: '-1',
    class: 'P',
    group: 'provisioning',
    value: 'number',
    description: 'Characters of the UID to keep in volume names, 0 to 32, dashes removed. -1: all, with dashes.',
    since: 'go',
  },
  'default-fstype': {
    kind: 'string',
    default: '',
    class: 'P',
    group: 'provisioning',
    value: 'fstype',
    description: 'File system of volumes whose storage class names none.',
    since: 'go',
  },
  'extra-create-metadata': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'provisioning',
    description: 'Pass the names of claim and volume to the driver, as parameters of CreateVolume.',
    since: 'go',
  },
  'controller-publish-readonly': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'provisioning',
    description: 'Mark volumes read-only whose only access mode is ReadOnlyMany.',
    since: 'go',
  },
  'prevent-volume-mode-conversion': {
    kind: 'bool',
    default: 'true',
    class: 'P',
    group: 'provisioning',
    description: 'Refuse to restore a snapshot with another volume mode than its source had.',
    since: 'go',
  },
  'worker-threads': {
    kind: 'uint',
    default: '100',
    class: 'P',
    group: 'provisioning',
    value: 'number',
    description: 'Claims provisioned at the same time, and volumes deleted at the same time.',
    since: 'go',
  },
  'cloning-protection-threads': {
    kind: 'uint',
    default: '1',
    class: 'P',
    group: 'provisioning',
    value: 'number',
    description: 'Workers that remove the finalizer from the sources of finished clones.',
    since: 'go',
  },
  'retry-interval-start': {
    kind: 'duration',
    default: '1s',
    class: 'P',
    group: 'provisioning',
    value: 'duration',
    description: 'Wait before the first retry of a failed claim or volume; doubles with each failure.',
    since: 'go',
  },
  'retry-interval-max': {
    kind: 'duration',
    default: '5m',
    class: 'P',
    group: 'provisioning',
    value: 'duration',
    description: 'Maximum wait between retries.',
    since: 'go',
  },
  'snapshot-orphan-sweep-interval': {
    kind: 'duration',
    default: '5m',
    class: 'P',
    group: 'provisioning',
    value: 'duration',
    description: 'How often snapshots are searched for finalizers left behind. 0: never.',
    since: 'go',
  },
  'intent-journal': {
    kind: 'journal',
    default: 'lease',
    class: 'P',
    group: 'provisioning',
    value: 'kind',
    description:
      'Where volumes are recorded before they are created, so that what a crash interrupts is finished, undone or reported: lease, or off. In the namespace that leader election would use. Without the permission to write Leases there nothing is recorded.',
    since: 'v0.1.0',
  },
  'audit-interval': {
    kind: 'duration',
    default: '0s',
    defaultNote: 'off',
    class: 'P',
    group: 'provisioning',
    value: 'duration',
    description:
      "How often the driver's volumes are compared with PersistentVolumes and the intent journal, for metrics and the status page. Needs LIST_VOLUMES. Nothing is deleted. 0: never.",
    since: 'v0.1.0',
  },
  'strict-topology': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'topology',
    description: 'Late binding: offer the driver only the topology of the selected node.',
    since: 'go',
  },
  'immediate-topology': {
    kind: 'bool',
    default: 'true',
    class: 'P',
    group: 'topology',
    description: 'Immediate binding: offer the driver the topology of the whole cluster; otherwise none.',
    since: 'go',
  },
  'enable-capacity': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'capacity',
    description: 'Publish CSIStorageCapacity objects. Needs NAMESPACE and POD_NAME.',
    since: 'go',
  },
  'capacity-threads': {
    kind: 'uint',
    default: '1',
    class: 'P',
    group: 'capacity',
    value: 'number',
    description: 'Capacity objects updated at the same time.',
    since: 'go',
  },
  'capacity-poll-interval': {
    kind: 'duration',
    default: '1m',
    class: 'P',
    group: 'capacity',
    value: 'duration',
    description: 'How often the driver is queried again for all capacities.',
    since: 'go',
  },
  'capacity-ownerref-level': {
    kind: 'int',
    default: '1',
    class: 'P',
    group: 'capacity',
    value: 'number',
    description: 'Owner of the objects, counted in steps from the Pod (0) upwards. Negative: none.',
    since: 'go',
  },
  'capacity-for-immediate-binding': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'capacity',
    description: 'Publish for storage classes with immediate binding too.',
    since: 'go',
  },
  'node-deployment': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'node',
    description: 'Run beside the driver on each node, for node-local volumes. Needs NODE_NAME.',
    since: 'go',
  },
  'node-deployment-immediate-binding': {
    kind: 'bool',
    default: 'true',
    class: 'P',
    group: 'node',
    description: 'Let the nodes agree on one of them for claims with immediate binding.',
    since: 'go',
  },
  'node-deployment-base-delay': {
    kind: 'duration',
    default: '20s',
    class: 'P',
    group: 'node',
    value: 'duration',
    description: 'First wait, and its random range, before a node takes a claim with immediate binding.',
    since: 'go',
  },
  'node-deployment-max-delay': {
    kind: 'duration',
    default: '60s',
    class: 'P',
    group: 'node',
    value: 'duration',
    description: 'Maximum of that wait.',
    since: 'go',
  },
  'leader-election': {
    kind: 'bool',
    default: 'false',
    class: 'G',
    group: 'election',
    description: 'Let one of several replicas do the work, chosen through a Lease.',
    since: 'go',
  },
  'leader-election-namespace': {
    kind: 'string',
    default: '',
    defaultNote: 'the namespace of the Pod',
    class: 'G',
    group: 'election',
    value: 'name',
    description: 'Namespace of the Lease.',
    since: 'go',
  },
  'leader-election-lease-duration': {
    kind: 'duration',
    default: '15s',
    class: 'G',
    group: 'election',
    value: 'duration',
    description: 'How long a lease lasts after its last renewal. Others take over a second later.',
    since: 'go',
  },
  'leader-election-renew-deadline': {
    kind: 'duration',
    default: '10s',
    class: 'G',
    group: 'election',
    value: 'duration',
    description: 'How long the leader tries to renew before it gives up. Less than the lease duration.',
    since: 'go',
  },
  'leader-election-retry-period': {
    kind: 'duration',
    default: '5s',
    class: 'G',
    group: 'election',
    value: 'duration',
    description: 'Wait between attempts to acquire or renew. 1.2 times this is less than the renew deadline.',
    since: 'go',
  },
  'leader-election-labels': {
    kind: 'labels',
    default: '',
    class: 'G',
    group: 'election',
    value: 'key:value,...',
    description: 'Labels of the Lease. May be given several times.',
    since: 'go',
  },
  'http-endpoint': {
    kind: 'string',
    default: '',
    defaultNote: 'no server',
    class: 'G',
    group: 'http',
    value: 'address',
    description:
      'Listen address, such as :8080, for metrics, /healthz, /readyz and, with leader election, /healthz/leader-election.',
    since: 'go',
  },
  'metrics-address': {
    kind: 'string',
    default: '',
    defaultNote: 'no server',
    class: 'G',
    group: 'http',
    value: 'address',
    description: 'Listen address for metrics, /healthz and /readyz, without /healthz/leader-election.',
    deprecated: 'use --http-endpoint',
    since: 'go',
  },
  'metrics-path': {
    kind: 'string',
    default: '/metrics',
    class: 'G',
    group: 'http',
    value: 'path',
    description: 'Path of the metrics.',
    since: 'go',
  },
  'enable-pprof': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'http',
    description: 'Serve CPU and heap profiles of this process below /debug/pprof/.',
    since: 'go',
  },
  'status-page': {
    kind: 'bool',
    default: 'false',
    class: 'P',
    group: 'http',
    description:
      'Serve a page at /status with what waits and why, for people. It shows names of claims and driver errors.',
    since: 'v0.1.0',
  },
  v: {
    kind: 'verbosity',
    default: '0',
    class: 'P',
    group: 'logging',
    value: 'level',
    shorthand: 'v',
    description:
      'Verbosity: 0 lifecycle, outcomes and failures; 2 also calls to the driver and decisions; 5 also requests and responses.',
    since: 'go',
  },
  'logging-format': {
    kind: 'string',
    default: 'text',
    class: 'P',
    group: 'logging',
    value: 'format',
    description: 'text or json; both on standard error.',
    since: 'go',
  },
  vmodule: {
    kind: 'vmodule',
    default: '',
    class: 'P',
    group: 'logging',
    value: 'pattern=N,...',
    description: 'Verbosity per source file.',
    withoutEffect: true,
    since: 'go',
  },
  'log-flush-frequency': {
    kind: 'duration',
    default: '5s',
    class: 'P',
    group: 'logging',
    value: 'duration',
    description: 'Maximum time between flushes; every line is written at once anyway.',
    withoutEffect: true,
    since: 'go',
  },
  'log-text-split-stream': splitStream,
  'log-text-info-buffer-size': infoBufferSize,
  'log-json-split-stream': splitStream,
  'log-json-info-buffer-size': infoBufferSize,
  'feature-gates': {
    kind: 'gates',
    default: '',
    class: 'P',
    group: 'general',
    value: 'name=bool,...',
    description:
      'Features to turn on or off: CrossNamespaceVolumeDataSource (off), ReleaseLeaderElectionOnExit (on). May be given several times.',
    since: 'go',
  },
  automaxprocs: {
    kind: 'unused-bool',
    default: '',
    class: 'G',
    group: 'general',
    description: 'Adapts Go threads to the CPU quota.',
    withoutEffect: true,
    since: 'go',
  },
  version: {
    kind: 'bool',
    default: 'false',
    class: 'G',
    group: 'general',
    description: 'Print name and version, then end.',
    since: 'go',
  },
} as const satisfies Record<string, FlagSpec>;

/** The name of a flag, without dashes. */
export type FlagName = keyof typeof flagTable;

/** A pattern of `--vmodule` with its verbosity. */
export interface VmoduleItem {
  readonly pattern: string;
  readonly verbosity: number;
}

/** Where the intent journal is. */
export type JournalKind = 'lease' | 'off';

/** What a kind's text becomes. Durations are nanoseconds, quantities whole units rounded up. */
export interface KindValues {
  string: string;
  bool: boolean;
  duration: bigint;
  int: number;
  uint: number;
  float: number;
  float32: number;
  verbosity: number;
  quantity: bigint;
  gates: ReadonlyMap<string, boolean>;
  labels: ReadonlyMap<string, string>;
  vmodule: readonly VmoduleItem[];
  journal: JournalKind;
  'unused-bool': boolean;
}

/** The values of all flags, given or default. */
export type FlagValues = { readonly [Name in FlagName]: KindValues[(typeof flagTable)[Name]['kind']] };

/** Name and description of every flag, typed the same for all: for loops over the table. */
export const flagList: readonly (readonly [FlagName, FlagSpec])[] = Object.entries(flagTable) as [FlagName, FlagSpec][];

/** The flag of that name, or undefined. */
export function findFlag(name: string): FlagSpec | undefined {
  return Object.hasOwn(flagTable, name) ? flagTable[name as FlagName] : undefined;
}

/** Whether `--name` alone means true, so that a value needs `=`. */
export function isBoolean(spec: FlagSpec): boolean {
  return spec.kind === 'bool' || spec.kind === 'unused-bool';
}
