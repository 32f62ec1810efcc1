import { untilAborted } from '../../base/abort.ts';
import { OptionalApi } from '../../csi/optional-api.ts';
import { volumeSnapshots } from '../../csi/sources/snapshot-objects.ts';
import { runSnapshotSweep } from '../../csi/sources/snapshot-sweep.ts';
import { untilCapable } from '../../csi/until-capable.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions, OpenSources } from '../run-phase-options.ts';
import { onceServed } from './once-served.ts';

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
