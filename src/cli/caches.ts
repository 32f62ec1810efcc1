/** The caches that the sidecar adds to those of the provision controller. */
import { type ReferenceGrant, referenceGrants } from '../csi/sources/reference-grants.ts';
import { nodeInformers, type NodeInformers } from '../csi/topology/topology-nodes.ts';
import { Informer } from '../kube/informer.ts';
import { withoutManagedFields } from '../provision/informers.ts';
import type { RunPhaseOptions } from './run-phase-options.ts';

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
