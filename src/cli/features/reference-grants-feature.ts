import { OptionalApi } from '../../csi/optional-api.ts';
import { type ReferenceGrant, referenceGrants } from '../../provision/reference-grant.ts';
import { Informer } from '../../kube/cache/informer.ts';
import { withoutManagedFields } from '../../provision/cache/informers.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';
import { onceServed } from './once-served.ts';

/** The ReferenceGrants that allow claims a source in another namespace. */
export interface GrantsFeature extends Feature {
  readonly grants: Informer<ReferenceGrant>;
}

/**
 * Checks whether grants are served. Where they are, the cache must have synced before the first claim: an empty one
 * grants nothing. Undefined where the gate is off.
 */
export async function grantsFeature(options: FeatureOptions): Promise<GrantsFeature | undefined> {
  const { config, transport, client, metrics, ending, clock, logger } = options;
  if (!config.featureGates.crossNamespaceVolumeDataSource) return undefined;
  const grants = new Informer<ReferenceGrant>({
    transport,
    resource: referenceGrants,
    metrics: metrics.reflector(referenceGrants.plural),
    transform: withoutManagedFields<ReferenceGrant>,
    clock,
    logger,
  });
  const api = new OptionalApi({ client, resource: referenceGrants, clock, logger });
  if ((await api.check(ending)) === 'present') return { grants, caches: { grants } };
  return { grants, follow: (signal) => onceServed(api, { signal, logger }, (until) => grants.run(until)) };
}
