import { collectGarbage } from '../../base/collect-garbage.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

/** After the caches have synced: the claims that waited for the start have their volumes by then. */
const quietMs = 2000;
/** With more than this in use the collection would block for too long; V8 has then collected while the caches filled. */
const maxHeapBytes = 25_000_000;

/** Frees what the start left behind, which V8 would keep for as long as the program is idle. */
export function startGarbageFeature({ clock }: Pick<FeatureOptions, 'clock'>): Feature {
  return {
    async run({ stop }) {
      await clock.sleep(quietMs, { signal: stop }).catch(() => undefined);
      if (!stop.aborted && process.memoryUsage().heapUsed <= maxHeapBytes) collectGarbage();
    },
  };
}
