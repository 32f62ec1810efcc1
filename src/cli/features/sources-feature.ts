/** Features for the sources of claims, and for the attributes classes that claims name. */
import { untilAborted } from '../../base/abort.ts';
import type { Logger } from '../../base/logger.ts';
import {
  type AttributesClassApi,
  FoundAttributesClassApi,
  olderAttributesClassVersions,
  volumeAttributesClasses,
} from '../../csi/volume-attributes-class.ts';
import { OptionalApi } from '../../csi/optional-api.ts';
import { CloningProtectionController } from '../../csi/sources/cloning-protection.ts';
import { volumeSnapshots } from '../../csi/sources/snapshot-source.ts';
import { runSnapshotSweep } from '../../csi/sources/snapshot-sweep.ts';
import { untilCapable } from '../../csi/driver-info.ts';
import { Informer } from '../../kube/cache/informer.ts';
import { withoutManagedFields } from '../../provision/cache/informers.ts';
import { type ReferenceGrant, referenceGrants } from '../../provision/objects.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions, OpenSources } from '../run-phase-options.ts';

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

/** Removes the finalizer from sources of clones once they are being deleted and no pending claim clones them. */
export function cloneProtectionFeature(options: FeatureOptions, { loaded, openSources }: OpenSources): Feature {
  const { config, driver, client, recorder, informers, metrics, clock, logger } = options;
  const { cloningProtectionThreads, retryIntervalStartMs, retryIntervalMaxMs } = config.provisioning;
  return {
    async run({ stop, abort }) {
      await untilCapable(driver, ({ cloneVolume }) => cloneVolume, stop);
      await untilAborted(loaded, stop);
      const controller = new CloningProtectionController({
        client,
        recorder,
        claims: informers.claims,
        plannedSources: openSources,
        workers: cloningProtectionThreads,
        retryStartMs: retryIntervalStartMs,
        retryMaxMs: retryIntervalMaxMs,
        queueMetrics: metrics.queues.claims,
        clock,
        logger,
      });
      await controller.run({ stop, abort });
    },
  };
}

/** Removes the finalizer of restores from snapshots that no claim waits for any more. */
export function snapshotSweepFeature(options: FeatureOptions, { loaded, openSources }: OpenSources): Feature {
  const { config, driver, client, transport, recorder, informers, metrics, clock, logger } = options;
  const intervalMs = config.provisioning.snapshotSweepIntervalMs;
  if (intervalMs === null) return {};
  return {
    async run({ stop }) {
      await untilCapable(driver, ({ createDeleteSnapshot }) => createDeleteSnapshot, stop);
      await untilAborted(loaded, stop);
      const { claims } = informers;
      const sweep = { client, transport, claims, plannedSources: openSources, recorder, intervalMs, clock, logger };
      const api = new OptionalApi({ client, resource: volumeSnapshots, clock, logger });
      await onceServed(api, { signal: stop, logger }, (signal) =>
        runSnapshotSweep({ ...sweep, metrics: metrics.reflector(volumeSnapshots.plural) }, signal),
      );
    },
  };
}

/** Runs something once an optional API is served, also when that is only installed later. Never rejects. */
async function onceServed(
  api: OptionalApi,
  { signal, logger }: { signal: AbortSignal; logger: Logger },
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  try {
    await api.waitUntilPresent(signal);
    await run(signal);
  } catch (error) {
    if (!signal.aborted) logger.error({ err: error, resource: api.resource }, 'Using an optional API failed');
  }
}

export interface AttributesClassesFeature extends Feature {
  /** Absent where the gate was switched off. */
  readonly api?: AttributesClassApi;
}

/**
 * Attributes classes are used as the gate says where it was set, else wherever the API is served, which is checked before
 * the first claim and, while it is missing, for each claim that names one.
 */
export function attributesClassesFeature(options: FeatureOptions): AttributesClassesFeature {
  const { config, client, clock, logger } = options;
  const { volumeAttributesClass, volumeAttributesClassNamed } = config.featureGates;
  if (!volumeAttributesClass) return {};
  const found = new OptionalApi({
    client,
    resource: volumeAttributesClasses,
    olderVersions: olderAttributesClassVersions,
    asksTwice: true,
    clock,
    logger,
  });
  const api = new FoundAttributesClassApi({ api: found, required: volumeAttributesClassNamed, clock });
  if (volumeAttributesClassNamed) return { api };
  return {
    api,
    async prepare(signal) {
      if ((await api.check(signal)) !== 'absent') return;
      logger.info(
        {},
        'Disabling VolumeAttributesClass feature gate because the VolumeAttributesClass v1 API is not available',
      );
    },
  };
}
