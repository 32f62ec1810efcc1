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
  /** Only says `parse error` for a bad value, as flags do that the Go sidecar imports from a Go flag set. */
  readonly isTerse?: true;
  readonly group: FlagGroup;
  /** Placeholder of the value in help. Default: that of the kind. */
  readonly value?: string;
  readonly description: string;
  readonly shorthand?: 'v';
  /** What to use instead. */
  readonly deprecated?: string;
  /** Accepted so that existing deployments start, without effect here. */
  readonly withoutEffect?: true;
  /** Our release that brought the flag; undefined: the Go sidecar v6.4 has it. */
  readonly since?: `v${string}`;
}

/** `--log-*-split-stream`, an alpha option of the Go sidecar whose feature gate cannot be switched on. */
const splitStream = {
  kind: 'bool',
  default: 'false',
  group: 'logging',
  description: 'Only false is accepted.',
  withoutEffect: true,
} as const satisfies FlagSpec;

/** `--log-*-info-buffer-size`, an alpha option like the one above. */
const infoBufferSize = {
  kind: 'quantity',
  default: '0',
  group: 'logging',
  value: 'quantity',
  description: 'Only 0 is accepted.',
  withoutEffect: true,
} as const satisfies FlagSpec;

/** Every flag by its name, in the order of help within each group. */
export const flagTable = {
  'csi-address': {
    kind: 'string',
    default: '/run/csi/socket',
    isTerse: true,
    group: 'driver',
    value: 'path',
    description: 'Socket of the CSI driver: an absolute path, or unix:// with one.',
  },
  timeout: {
    kind: 'duration',
    default: '10s',
    group: 'driver',
    description: 'Deadline of every single call to the CSI driver.',
  },
  'csi-reconnect-limit': {
    kind: 'duration',
    default: '0s',
    defaultNote: 'none',
    group: 'driver',
    description: 'How long a driver that went away may stay away before the process ends with code 1. 0: no limit.',
    since: 'v0.1.0',
  },
  kubeconfig: {
    kind: 'string',
    default: '',
    isTerse: true,
    group: 'kubernetes',
    value: 'path',
    description: 'Path of a kubeconfig file. A KUBECONFIG variable wins. Neither: the in-cluster configuration.',
  },
  master: {
    kind: 'string',
    default: '',
    group: 'kubernetes',
    value: 'url',
    description:
      'URL of the API server. With a kubeconfig it replaces the server named there; alone, no credentials are used.',
  },
  'kube-api-qps': {
    kind: 'float',
    default: '5',
    defaultNote: 'no limit',
    isTerse: true,
    group: 'kubernetes',
    description: 'Limit of requests per second. Negative: no limit.',
  },
  'kube-api-burst': {
    kind: 'int',
    default: '10',
    isTerse: true,
    group: 'kubernetes',
    description: 'Requests that may go out at once when --kube-api-qps sets a limit.',
  },
  'kube-api-capacity-qps': {
    kind: 'float32',
    default: '1',
    defaultNote: 'no limit',
    group: 'kubernetes',
    description: 'Limit of requests per second for storage capacity alone. Negative: no limit.',
  },
  'kube-api-capacity-burst': {
    kind: 'int',
    default: '5',
    group: 'kubernetes',
    description: 'Requests that may go out at once when --kube-api-capacity-qps sets a limit.',
  },
  'volume-name-prefix': {
    kind: 'string',
    default: 'pvc',
    group: 'provisioning',
    value: 'text',
    description: 'Volumes are named <prefix>-<UID of the claim>.',
  },
  'volume-name-uuid-length': {
    kind: 'int',
    default: '-1',
    group: 'provisioning',
    description: 'Characters of the UID to keep in volume names, 0 to 32, dashes removed. -1: all, with dashes.',
  },
  'default-fstype': {
    kind: 'string',
    default: '',
    group: 'provisioning',
    value: 'fstype',
    description: 'File system of volumes whose storage class names none.',
  },
  'extra-create-metadata': {
    kind: 'bool',
    default: 'false',
    group: 'provisioning',
    description: 'Pass the names of claim and volume to the driver, as parameters of CreateVolume.',
  },
  'controller-publish-readonly': {
    kind: 'bool',
    default: 'false',
    group: 'provisioning',
    description: 'Mark volumes read-only whose only access mode is ReadOnlyMany.',
  },
  'prevent-volume-mode-conversion': {
    kind: 'bool',
    default: 'true',
    group: 'provisioning',
    description: 'Refuse to restore a snapshot with another volume mode than its source had.',
  },
  'worker-threads': {
    kind: 'uint',
    default: '100',
    group: 'provisioning',
    description: 'Claims provisioned at the same time, and volumes deleted at the same time.',
  },
  'cloning-protection-threads': {
    kind: 'uint',
    default: '1',
    group: 'provisioning',
    description: 'Workers that remove the finalizer from the sources of finished clones.',
  },
  'retry-interval-start': {
    kind: 'duration',
    default: '1s',
    group: 'provisioning',
    description: 'Wait before the first retry of a failed claim or volume; doubles with each failure.',
  },
  'retry-interval-max': {
    kind: 'duration',
    default: '5m',
    group: 'provisioning',
    description: 'Maximum wait between retries.',
  },
  'snapshot-orphan-sweep-interval': {
    kind: 'duration',
    default: '5m',
    group: 'provisioning',
    description: 'How often snapshots are searched for finalizers left behind. 0: never.',
  },
  'intent-journal': {
    kind: 'journal',
    default: 'lease',
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
    group: 'provisioning',
    description:
      "How often the driver's volumes are compared with PersistentVolumes and the intent journal, for metrics and the status page. Needs LIST_VOLUMES. Nothing is deleted. 0: never.",
    since: 'v0.1.0',
  },
  'strict-topology': {
    kind: 'bool',
    default: 'false',
    group: 'topology',
    description: 'Late binding: offer the driver only the topology of the selected node.',
  },
  'immediate-topology': {
    kind: 'bool',
    default: 'true',
    group: 'topology',
    description: 'Immediate binding: offer the driver the topology of the whole cluster; otherwise none.',
  },
  'enable-capacity': {
    kind: 'bool',
    default: 'false',
    group: 'capacity',
    description: 'Publish CSIStorageCapacity objects. Needs NAMESPACE and POD_NAME.',
  },
  'capacity-threads': {
    kind: 'uint',
    default: '1',
    group: 'capacity',
    description: 'Capacity objects updated at the same time.',
  },
  'capacity-poll-interval': {
    kind: 'duration',
    default: '1m',
    group: 'capacity',
    description: 'How often the driver is queried again for all capacities.',
  },
  'capacity-ownerref-level': {
    kind: 'int',
    default: '1',
    group: 'capacity',
    description: 'Owner of the objects, counted in steps from the Pod (0) upwards. Negative: none.',
  },
  'capacity-for-immediate-binding': {
    kind: 'bool',
    default: 'false',
    group: 'capacity',
    description: 'Publish for storage classes with immediate binding too.',
  },
  'node-deployment': {
    kind: 'bool',
    default: 'false',
    group: 'node',
    description: 'Run beside the driver on each node, for node-local volumes. Needs NODE_NAME.',
  },
  'node-deployment-immediate-binding': {
    kind: 'bool',
    default: 'true',
    group: 'node',
    description: 'Let the nodes agree on one of them for claims with immediate binding.',
  },
  'node-deployment-base-delay': {
    kind: 'duration',
    default: '20s',
    group: 'node',
    description: 'First wait, and its random range, before a node takes a claim with immediate binding.',
  },
  'node-deployment-max-delay': {
    kind: 'duration',
    default: '60s',
    group: 'node',
    description: 'Maximum of that wait.',
  },
  'leader-election': {
    kind: 'bool',
    default: 'false',
    isTerse: true,
    group: 'election',
    description: 'Let one of several replicas do the work, chosen through a Lease.',
  },
  'leader-election-namespace': {
    kind: 'string',
    default: '',
    defaultNote: 'the namespace of the Pod',
    isTerse: true,
    group: 'election',
    value: 'name',
    description: 'Namespace of the Lease.',
  },
  'leader-election-lease-duration': {
    kind: 'duration',
    default: '15s',
    isTerse: true,
    group: 'election',
    description: 'How long a lease lasts after its last renewal. Others take over a second later.',
  },
  'leader-election-renew-deadline': {
    kind: 'duration',
    default: '10s',
    isTerse: true,
    group: 'election',
    description: 'How long the leader tries to renew before it gives up. Less than the lease duration.',
  },
  'leader-election-retry-period': {
    kind: 'duration',
    default: '5s',
    isTerse: true,
    group: 'election',
    description: 'Wait between attempts to acquire or renew. 1.2 times this is less than the renew deadline.',
  },
  'leader-election-labels': {
    kind: 'labels',
    default: '',
    isTerse: true,
    group: 'election',
    value: 'key:value,...',
    description: 'Labels of the Lease. May be given several times.',
  },
  'http-endpoint': {
    kind: 'string',
    default: '',
    defaultNote: 'no server',
    isTerse: true,
    group: 'http',
    value: 'address',
    description:
      'Listen address, such as :8080, for metrics, /healthz, /readyz and, with leader election, /healthz/leader-election.',
  },
  'metrics-address': {
    kind: 'string',
    default: '',
    defaultNote: 'no server',
    isTerse: true,
    group: 'http',
    value: 'address',
    description: 'Listen address for metrics, /healthz and /readyz, without /healthz/leader-election.',
    deprecated: 'use --http-endpoint',
  },
  'metrics-path': {
    kind: 'string',
    default: '/metrics',
    isTerse: true,
    group: 'http',
    value: 'path',
    description: 'Path of the metrics.',
  },
  'enable-pprof': {
    kind: 'bool',
    default: 'false',
    group: 'http',
    description: 'Serve CPU and heap profiles of this process below /debug/pprof/.',
  },
  'status-page': {
    kind: 'bool',
    default: 'false',
    group: 'http',
    description:
      'Serve a page at /status with what waits and why, for people. It shows names of claims and driver errors.',
    since: 'v0.1.0',
  },
  v: {
    kind: 'verbosity',
    default: '0',
    group: 'logging',
    value: 'level',
    shorthand: 'v',
    description:
      'Verbosity: 0 lifecycle, outcomes and failures; 2 also calls to the driver and decisions; 5 also requests and responses.',
  },
  'logging-format': {
    kind: 'string',
    default: 'text',
    group: 'logging',
    value: 'format',
    description: 'text or json; both on standard error.',
  },
  vmodule: {
    kind: 'vmodule',
    default: '',
    group: 'logging',
    value: 'pattern=N,...',
    description: 'Verbosity per source file.',
    withoutEffect: true,
  },
  'log-flush-frequency': {
    kind: 'duration',
    default: '5s',
    group: 'logging',
    description: 'Maximum time between flushes; every line is written at once anyway.',
    withoutEffect: true,
  },
  'log-text-split-stream': splitStream,
  'log-text-info-buffer-size': infoBufferSize,
  'log-json-split-stream': splitStream,
  'log-json-info-buffer-size': infoBufferSize,
  'feature-gates': {
    kind: 'gates',
    default: '',
    group: 'general',
    value: 'name=bool,...',
    description:
      'Features to turn on or off: CrossNamespaceVolumeDataSource (off), ReleaseLeaderElectionOnExit (on). May be given several times.',
  },
  automaxprocs: {
    kind: 'unused-bool',
    default: '',
    group: 'general',
    description: 'Adapts Go threads to the CPU quota.',
    withoutEffect: true,
  },
  version: {
    kind: 'bool',
    default: 'false',
    isTerse: true,
    group: 'general',
    description: 'Print name and version, then end.',
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

const placeholders: Readonly<Partial<Record<FlagKind, string>>> = {
  duration: 'duration',
  int: 'number',
  uint: 'number',
  float: 'number',
  float32: 'number',
};

/** What stands for the value in help; undefined for a boolean. */
export function placeholderOf({ value, kind }: FlagSpec): string | undefined {
  return value ?? placeholders[kind];
}

/** Whether `--name` alone means true, so that a value needs `=`. */
export function isBoolean(spec: FlagSpec): boolean {
  return spec.kind === 'bool' || spec.kind === 'unused-bool';
}
