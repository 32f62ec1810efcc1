import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { RequestOptions } from './request.ts';
import type { RequestKind } from './request-turns.ts';
import type { TokenBucket } from './token-bucket.ts';

/** Long waits are logged at info at most this often, in milliseconds: there are usually hundreds at once. */
const noticeEveryMs = 10_000;
const minDebugWaitMs = 50;
const minInfoWaitMs = 1000;
/** How many writes of PersistentVolumes are sent in each turn: each completes the work of several other requests. */
const volumeWritesInRow = 4;

/** Makes requests wait for the client-side rate limit, and logs long waits. */
export class Throttle {
  readonly #options: { rateLimit: TokenBucket; clock: Clock; logger: Logger };
  #loggedAtMs = -Infinity;

  constructor(options: { rateLimit: TokenBucket; clock: Clock; logger: Logger }) {
    this.#options = options;
  }

  /** Waits for a token. @throws the signal's reason when it aborts first; no token is used then. */
  async wait(
    { method, path, info }: Pick<RequestOptions, 'method' | 'path' | 'info'>,
    signal: AbortSignal,
  ): Promise<void> {
    const { rateLimit, clock, logger } = this.#options;
    const waitedMs = await rateLimit.wait(signal, kindOf(info, method));
    if (waitedMs <= minDebugWaitMs) return;
    const fields = { delayMs: Math.round(waitedMs), verb: method, path };
    const isDue = waitedMs > minInfoWaitMs && clock.monotonicMs() - this.#loggedAtMs >= noticeEveryMs;
    if (isDue) this.#loggedAtMs = clock.monotonicMs();
    logger[isDue ? 'info' : 'debug'](fields, 'Waited before sending request, client-side throttling');
  }
}

/**
 * Kinds take turns: neither a page of a list nor a write of the intent journal, for which many claims wait, has to wait for
 * hundreds of other requests.
 */
function kindOf({ verb, resource }: RequestOptions['info'], method: RequestOptions['method']): RequestKind {
  const isVolumeWrite = resource.plural === 'persistentvolumes' && method !== 'GET';
  return { name: `${verb} ${resource.plural}`, inRow: isVolumeWrite ? volumeWritesInRow : 1 };
}
