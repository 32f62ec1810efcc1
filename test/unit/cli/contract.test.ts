/** Tables that say the same of many names: each flag reaches the configuration, each gate is known. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import type { Config } from '../../../src/cli/config.ts';

const environment = { NODE_NAME: 'n1', NAMESPACE: 'storage', POD_NAME: 'p1' };

function configOf(args: readonly string[]): Config {
  const parsed = parseCommandLine({ argv0: '/csi-provisioner', args, environment, version: 'v1' });
  assert.equal(parsed.kind, 'run');
  return parsed.config;
}

/** A flag with another value than its default, where it must arrive, and what must be on for it to count. */
const rows: [flag: string, read: (config: Config) => unknown, want: unknown, beside?: string][] = [
  ['--csi-address=/s', (c) => c.csiAddress, '/s'],
  ['--kubeconfig=/k', (c) => c.kubernetes.kubeconfigFiles, ['/k']],
  ['--master=host:1', (c) => c.kubernetes.masterUrl, 'host:1'],
  ['--kube-api-qps=7', (c) => c.kubernetes.rateLimit?.perSecond, 7],
  ['--kube-api-burst=0x10', (c) => c.kubernetes.rateLimit?.burst, 16, '--kube-api-qps=7'],
  ['--kube-api-capacity-qps=.5', (c) => c.kubernetes.capacityRateLimit?.perSecond, 0.5, '--enable-capacity'],
  ['--timeout=1m30s', (c) => c.csiTimeoutMs, 90_000],
  ['--volume-name-prefix=vol', (c) => c.provisioning.volumeNamePrefix, 'vol'],
  ['--volume-name-uuid-length=8', (c) => c.provisioning.volumeNameUuidLength, 8],
  ['--retry-interval-start=250ms', (c) => c.provisioning.retryIntervalStartMs, 250],
  ['--retry-interval-max=1.5h', (c) => c.provisioning.retryIntervalMaxMs, 5_400_000],
  ['--worker-threads=3', (c) => c.provisioning.workerThreads, 3],
  ['--cloning-protection-threads=2', (c) => c.provisioning.cloningProtectionThreads, 2],
  ['--snapshot-orphan-sweep-interval=7s', (c) => c.provisioning.snapshotSweepIntervalMs, 7_000],
  ['--intent-journal=off', (c) => c.intentJournal, null],
  ['--audit-interval=6h', (c) => c.auditIntervalMs, 21_600_000],
  ['--capacity-threads=4', (c) => c.capacity?.threads, 4, '--enable-capacity'],
  ['--capacity-poll-interval=2m', (c) => c.capacity?.pollIntervalMs, 120_000, '--enable-capacity'],
  ['--capacity-ownerref-level=2', (c) => c.capacity?.ownerRefLevel, 2, '--enable-capacity'],
  ['--capacity-for-immediate-binding', (c) => c.capacity?.forImmediateBinding, true, '--enable-capacity'],
  ['--enable-capacity', (c) => c.capacity?.namespace, 'storage'],
  ['--strict-topology', (c) => c.provisioning.strictTopology, true],
  ['--immediate-topology=false', (c) => c.provisioning.immediateTopology, false],
  ['--extra-create-metadata', (c) => c.provisioning.extraCreateMetadata, true],
  ['--default-fstype=xfs', (c) => c.provisioning.defaultFsType, 'xfs'],
  ['--controller-publish-readonly', (c) => c.provisioning.controllerPublishReadOnly, true],
  ['--prevent-volume-mode-conversion=0', (c) => c.provisioning.preventVolumeModeConversion, false],
  ['--node-deployment', (c) => c.nodeDeployment?.nodeName, 'n1'],
  ['--node-deployment-immediate-binding=F', (c) => c.nodeDeployment?.immediateBinding, false, '--node-deployment'],
  ['--node-deployment-base-delay=1s', (c) => c.nodeDeployment?.baseDelayMs, 1_000, '--node-deployment'],
  ['--node-deployment-max-delay=2s', (c) => c.nodeDeployment?.maxDelayMs, 2_000, '--node-deployment'],
  ['--leader-election', (c) => c.leaderElection?.leaseDurationMs, 15_000],
  ['--leader-election-namespace=x', (c) => c.leaderElection?.namespace, 'x', '--leader-election'],
  ['--leader-election-namespace=x', (c) => c.intentJournal?.namespace, 'x'],
  ['--leader-election-lease-duration=1m', (c) => c.leaderElection?.leaseDurationMs, 60_000, '--leader-election'],
  ['--leader-election-renew-deadline=14s', (c) => c.leaderElection?.renewDeadlineMs, 14_000, '--leader-election'],
  ['--leader-election-retry-period=1s', (c) => c.leaderElection?.retryPeriodMs, 1_000, '--leader-election'],
  ['--leader-election-labels=a:,b:c', (c) => c.leaderElection?.labels, { a: '', b: 'c' }, '--leader-election'],
  ['--http-endpoint=:1', (c) => c.http?.address, ':1'],
  ['--metrics-address=:2', (c) => c.http?.address, ':2'],
  ['--metrics-path=/m', (c) => c.http?.metricsPath, '/m', '--http-endpoint=:1'],
  ['--enable-pprof', (c) => c.http?.profiles, true, '--http-endpoint=:1'],
  ['--status-page', (c) => c.http?.statusPage, true, '--http-endpoint=:1'],
  ['--feature-gates= Topology = f ,', (c) => c.featureGates.topology, false],
  ['-v5', (c) => c.logging.verbosity, 5],
  ['--logging-format=json', (c) => c.logging.format, 'json'],
];

describe('the flag reaches the configuration', () => {
  for (const [flag, read, want, ...others] of rows) {
    test(flag, () => {
      const given = others as string[];
      assert.deepEqual(read(configOf([...given, flag])), want);
      assert.notDeepEqual(read(configOf(given)), want, 'the default is another value');
    });
  }
});

/** The gates of the API server that a deployment may set. */
const settable = `APIResponseCompression APIServerIdentity APIServingWithRoutine AllowParsingUserUIDFromCertAuth
AllowUnsafeMalformedObjectDeletion CBORServingAndStorage ComponentFlagz ComponentStatusz ConcurrentWatchObjectDecode
ConstrainedImpersonation CoordinatedLeaderElection DeclarativeValidationBeta DeclarativeValidationTakeover
DetectCacheInconsistency KMSv1 ListFromCacheSnapshot ManifestBasedAdmissionControlConfig MutatingAdmissionPolicy
NativeHistograms OpenAPIEnums RemoteRequestHeaderUID ShardedListAndWatch SizeBasedListCostEstimate StorageVersionAPI
StorageVersionHash StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
TokenRequestServiceAccountUIDValidation UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
WatchCacheInitializationPostStartHook WatchList AllAlpha AllBeta`.split(/\s+/);
const lockedTrue = `APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints
AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache DeclarativeValidation ResilientWatchCacheInitialization
RetryGenerateName StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
StructuredAuthenticationConfiguration`.split(/\s+/);

describe('the gate of a library', () => {
  for (const name of settable) {
    test(`${name} is accepted with either value`, () => {
      for (const value of ['true', 'false']) configOf([`--feature-gates=${name}=${value}`]);
    });
  }
  for (const [name, locked] of [
    ...lockedTrue.map((name) => [name, true] as const),
    ['SeparateCacheWatchRPC', false] as const,
  ]) {
    test(`${name} is locked to ${locked}`, () => {
      configOf([`--feature-gates=${name}=${locked}`]);
      assert.throws(() => configOf([`--feature-gates=${name}=${!locked}`]), {
        code: 255,
        line: `cannot set feature gate ${name} to ${!locked}, feature is locked to ${locked}`,
      });
    });
  }
});
