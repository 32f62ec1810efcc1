import type { Clock } from '../base/clock.ts';
import type { Informer } from '../kube/informer.ts';
import type { Health } from './health.ts';

/** An informer, whatever it holds. */
export type AnyInformer = Pick<Informer<never>, 'run' | 'synced' | 'hasSynced' | 'lastSuccessMs' | 'lastError'>;

/** Caches by their names in health checks and log lines. */
export type Caches = Readonly<Record<string, AnyInformer>>;

/**
 * A watch ends after at most ten minutes and is opened again: both count as a success. A cache without a success for
 * this long, in milliseconds, may be far behind.
 */
const silentCacheMs = 900_000;

/**
 * Makes readiness depend on the caches until the result is disposed. Liveness does not: a restart would not bring the
 * API server back.
 */
export function checkCaches({ ready, clock }: { ready: Health; clock: Clock }, informers: Caches): Disposable {
  const checks = new DisposableStack();
  for (const [name, informer] of Object.entries(informers)) {
    const silence = (): string | undefined => {
      const silentMs = clock.monotonicMs() - informer.lastSuccessMs;
      if (silentMs < silentCacheMs) return undefined;
      const why = informer.lastError === undefined ? '' : `: ${informer.lastError.message}`;
      return `nothing received about ${name} for ${Math.round(silentMs / 60_000)} minutes${why}`;
    };
    checks.defer(ready.add(() => (informer.hasSynced ? silence() : `the cache of ${name} is not filled yet`)));
  }
  return checks;
}
