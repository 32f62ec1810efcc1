import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Collects garbage now and gives memory back to the system. Blocks for one to two milliseconds per megabyte that is in
 * use, so call it seldom, and with little in use. By itself V8 keeps the memory of the start-up for as long as the program is idle.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc'); // takes effect in contexts made from now on
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc'); // V8 refuses compiled code of other flags
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' }); // others keep freed pages for reuse for some seconds
}
