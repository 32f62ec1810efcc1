import { untilAborted } from '../../base/abort.ts';
import { CloningProtectionController } from '../../csi/sources/cloning-protection.ts';
import { untilCapable } from '../../csi/until-capable.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions, OpenSources } from '../run-phase-options.ts';

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
