import { fatalExit } from '../run/exit.ts';

/** The gates that change what we do. */
export interface FeatureGates {
  /** Topology handling, together with the driver's capability. */
  readonly topology: boolean;
  /** Volume attributes classes. */
  readonly volumeAttributesClass: boolean;
  /** Data sources in other namespaces, allowed by a ReferenceGrant. */
  readonly crossNamespaceVolumeDataSource: boolean;
  /** Drain on SIGTERM and release the lease. */
  readonly releaseLeaderElectionOnExit: boolean;
  /** The gate of volume attributes classes was set explicitly: the API server is not asked whether it serves them. */
  readonly volumeAttributesClassNamed: boolean;
}

/** A line to log once logging works. */
export interface Notice {
  readonly level: 'info' | 'warn';
  readonly fields: object;
  readonly message: string;
}

type Stage = 'alpha' | 'ga' | 'deprecated' | 'other';

interface GateSpec {
  readonly stage: Stage;
  readonly default: boolean;
  readonly locked?: boolean;
}

const ownGates = {
  Topology: { stage: 'ga', default: true },
  VolumeAttributesClass: { stage: 'ga', default: true },
  CrossNamespaceVolumeDataSource: { stage: 'alpha', default: false },
  ReleaseLeaderElectionOnExit: { stage: 'alpha', default: true },
} as const satisfies Record<string, GateSpec>;

type OwnGate = keyof typeof ownGates;

/** Gates of the Go libraries in the original: accepted without effect, so that a deployment that sets one still starts. */
const foreignGates = [
  'APIResponseCompression',
  'APIServerIdentity',
  'APIServingWithRoutine',
  'AllowParsingUserUIDFromCertAuth',
  'AllowUnsafeMalformedObjectDeletion',
  'CBORServingAndStorage',
  'ComponentFlagz',
  'ComponentStatusz',
  'ConcurrentWatchObjectDecode',
  'ConstrainedImpersonation',
  'CoordinatedLeaderElection',
  'DeclarativeValidationBeta',
  'DeclarativeValidationTakeover',
  'DetectCacheInconsistency',
  'KMSv1',
  'ListFromCacheSnapshot',
  'ManifestBasedAdmissionControlConfig',
  'MutatingAdmissionPolicy',
  'NativeHistograms',
  'OpenAPIEnums',
  'RemoteRequestHeaderUID',
  'ShardedListAndWatch',
  'SizeBasedListCostEstimate',
  'StorageVersionAPI',
  'StorageVersionHash',
  'StructuredAuthenticationConfigurationEgressSelector',
  'StructuredAuthenticationConfigurationJWKSMetrics',
  'TokenRequestServiceAccountUIDValidation',
  'UnauthenticatedHTTP2DOSMitigation',
  'UnknownVersionInteroperabilityProxy',
  'WatchCacheInitializationPostStartHook',
  'WatchList',
] as const;

/** Foreign gates that cannot be changed any more; all but one are on for good. */
const lockedGates = [
  'APIServerTracing',
  'AggregatedDiscoveryRemoveBetaType',
  'AnonymousAuthConfigurableEndpoints',
  'AuthorizeWithSelectors',
  'BtreeWatchCache',
  'ConsistentListFromCache',
  'DeclarativeValidation',
  'ResilientWatchCacheInitialization',
  'RetryGenerateName',
  'StreamingCollectionEncodingToJSON',
  'StreamingCollectionEncodingToProtobuf',
  'StructuredAuthenticationConfiguration',
] as const;

const gates: ReadonlyMap<string, GateSpec> = new Map<string, GateSpec>([
  ...Object.entries(ownGates),
  ['AllAlpha', { stage: 'other', default: false }],
  ['AllBeta', { stage: 'other', default: false }],
  ...foreignGates.map((name): [string, GateSpec] => [
    name,
    { stage: name === 'KMSv1' ? 'deprecated' : 'other', default: false },
  ]),
  ...lockedGates.map((name): [string, GateSpec] => [name, { stage: 'ga', default: true, locked: true }]),
  ['SeparateCacheWatchRPC', { stage: 'deprecated', default: false, locked: true }],
]);

/**
 * Applies `--feature-gates`. `ReleaseLeaderElectionOnExit` is on by default, unlike in the original.
 *
 * @throws {ExitError} code 255 for an unknown gate, or one that is locked to the other value.
 */
export function applyFeatureGates(asked: ReadonlyMap<string, boolean>): { gates: FeatureGates; notices: Notice[] } {
  const notices: Notice[] = [];
  for (const [name, value] of asked) {
    const spec = gates.get(name);
    if (spec === undefined) throw fatalExit(`unrecognized feature gate: ${name}`);
    if (spec.locked === true && value !== spec.default) {
      throw fatalExit(`cannot set feature gate ${name} to ${value}, feature is locked to ${spec.default}`);
    }
    const notice = stageNotice(spec.stage);
    if (notice !== undefined) notices.push({ level: 'info', fields: { featureGate: name, value }, message: notice });
  }
  const allAlpha = asked.get('AllAlpha');
  const value = (name: OwnGate): boolean => {
    const spec = ownGates[name];
    return asked.get(name) ?? (spec.stage === 'alpha' ? allAlpha : undefined) ?? spec.default;
  };
  return {
    notices,
    gates: {
      topology: value('Topology'),
      volumeAttributesClass: value('VolumeAttributesClass'),
      crossNamespaceVolumeDataSource: value('CrossNamespaceVolumeDataSource'),
      releaseLeaderElectionOnExit: value('ReleaseLeaderElectionOnExit'),
      volumeAttributesClassNamed: asked.has('VolumeAttributesClass'),
    },
  };
}

function stageNotice(stage: Stage): string | undefined {
  if (stage === 'ga') return 'Warning: setting GA feature gate. It will be removed in a future release.';
  if (stage === 'deprecated') {
    return 'Warning: setting deprecated feature gate. It will be removed in a future release.';
  }
  return undefined;
}
