/** The caches that the sidecar adds to those of the provision controller. */
import { type ReferenceGrant, referenceGrants } from '../csi/sources/reference-grants.ts';
import { nodeInformers, type NodeInformers } from '../csi/topology/topology-nodes.ts';
import { Informer } from '../kube/informer.ts';
import { withoutManagedFields } from '../provision/informers.ts';
import type { RunPhaseOptions } from './run-phase-options.ts';

/** An informer, whatever it holds. */
export type AnyInformer = Pick<Informer<never>, 'run' | 'synced' | 'hasSynced' | 'lastSuccessMs' | 'lastError'>;

/**
 * A watch ends after ten minutes at most, and the next one opens at once: both are news. A cache that heard nothing for
 * this long, in milliseconds, may be far behind.
 */
const silentCacheMs = 900_000;

/**
 * Lets readiness tell how the caches are, until it is disposed. Liveness does not depend on them: a restart would not
 * bring the API server back.
 */
export function checkCaches(
  { ready, clock }: Pick<RunPhaseOptions, 'ready' | 'clock'>,
  informers: Record<string, AnyInformer>,
): Disposable {
  const checks = new DisposableStack();
  for (const [name, informer] of Object.entries(informers)) {
    const silence = (): string | undefined => {
      const silentMs = clock.monotonicMs() - informer.lastSuccessMs;
      if (silentMs < silentCacheMs) return undefined;
      const why = informer.lastError === undefined ? '' : `: ${informer.lastError.message}`;
      return `no news of ${name} for ${Math.round(silentMs / 60_000)} minutes${why}`;
    };
    checks.defer(ready.add(() => (informer.hasSynced ? silence() : `the cache of ${name} is not filled yet`)));
  }
  return checks;
}

/** Nodes are watched for topology and for capacity; in node deployment the own node is all there is. */
export function clusterNodes({
  config,
  driver,
  transport,
  metrics,
  clock,
  logger,
}: RunPhaseOptions): NodeInformers | undefined {
  if (config.nodeDeployment !== null) return undefined;
  if (!config.featureGates.topology && config.capacity === null) return undefined;
  return nodeInformers({ transport, driverName: driver.name, metrics: metrics.reflector, clock, logger });
}

export function grantInformer({ transport, metrics, clock, logger }: RunPhaseOptions): Informer<ReferenceGrant> {
  return new Informer<ReferenceGrant>({
    transport,
    resource: referenceGrants,
    metrics: metrics.reflector(referenceGrants.plural),
    transform: withoutManagedFields<ReferenceGrant>,
    clock,
    logger,
  });
}
