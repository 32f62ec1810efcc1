import type { Clock } from '../base/clock.ts';
import type { Informer } from '../kube/cache/informer.ts';
import { ForbiddenError } from '../kube/client/api-error.ts';

/** What is wrong, or undefined while all is well. Must not wait. */
export type HealthCheck = () => string | undefined;

/** The checks behind one health path. */
export class Health {
  readonly #checks = new Set<HealthCheck>();

  /** Adds a check until the returned function is called. */
  add(check: HealthCheck): () => void {
    this.#checks.add(check);
    return () => this.#checks.delete(check);
  }

  /** What all failing checks report, in one line; undefined while all pass. */
  get unhealthyReason(): string | undefined {
    const reasons = [...this.#checks].map((check) => check()).filter((text) => text !== undefined);
    return reasons.length === 0 ? undefined : reasons.join('; ');
  }
}

/** An informer, whatever it holds. */
export type AnyInformer = Pick<
  Informer<never>,
  'run' | 'synced' | 'hasSynced' | 'lastSuccessMs' | 'lastByteMs' | 'maxSilenceMs' | 'lastError'
>;

/** Caches by their names in health checks and log lines. */
export type Caches = Readonly<Record<string, AnyInformer>>;

/**
 * A watch ends after at most ten minutes and is opened again: both count as a success. A cache without a success for
 * this long, in milliseconds, may be far behind.
 */
const silentCacheMs = 900_000;
/** Where bookmarks show that a watch is alive, a cache may be silent this many times as long as a watch before it is opened again. */
const silentWatches = 2;
/** A server that has just started forbids everything until it has read the roles; after this time a permission is missing, in milliseconds. */
const forbiddenMs = 15_000;

/**
 * Makes readiness depend on the caches until the result is disposed. Liveness does not: a restart would not bring the
 * API server back.
 */
export function checkCaches({ ready, clock }: { ready: Health; clock: Clock }, informers: Caches): Disposable {
  const checks = new DisposableStack();
  for (const [name, informer] of Object.entries(informers)) {
    let first: { error: Error; sinceMs: number } | undefined;
    const isForbidden = (nowMs: number): boolean => {
      const { lastError } = informer;
      if (!(lastError instanceof ForbiddenError) || lastError.isAdmission) {
        first = undefined;
        return false;
      }
      first ??= { error: lastError, sinceMs: nowMs };
      // after an outage the pause until the next request is long: one that was forbidden long ago says nothing of now
      return lastError !== first.error && nowMs - first.sinceMs >= forbiddenMs;
    };
    const silence = (): string | undefined => {
      const nowMs = clock.monotonicMs();
      const maxMs = Math.min((informer.maxSilenceMs ?? Infinity) * silentWatches, silentCacheMs);
      const isSilent = nowMs - informer.lastByteMs >= maxMs || nowMs - informer.lastSuccessMs >= silentCacheMs;
      return isForbidden(nowMs) || isSilent ? silenceText(name, informer, nowMs) : undefined;
    };
    const unfilled = (): string => `the cache of ${name} is not filled yet${reasonText(informer)}`;
    checks.defer(ready.add(() => (informer.hasSynced ? silence() : unfilled())));
  }
  return checks;
}

function silenceText(name: string, informer: AnyInformer, nowMs: number): string {
  const silentS = Math.round((nowMs - Math.min(informer.lastByteMs, informer.lastSuccessMs)) / 1000);
  return `nothing received about ${name} for ${silentS} seconds${reasonText(informer)}`;
}

function reasonText({ lastError }: AnyInformer): string {
  return lastError === undefined ? '' : `: ${lastError.message}`;
}
