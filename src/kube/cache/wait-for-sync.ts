import { untilAborted } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';

/** How often the caches that have not synced are logged, in milliseconds. */
const noticeEveryMs = 30_000;

/**
 * Waits until caches hold their first content, and logs every 30 s which do not.
 *
 * @param informers - by the name to show; a handler's registration counts as well as an informer.
 * @throws the signal's reason when it aborts first.
 */
export async function waitForSync(
  informers: Record<string, { readonly hasSynced: boolean; readonly synced: Promise<void> }>,
  options: { signal: AbortSignal; clock: Clock; logger: Logger },
): Promise<void> {
  const { signal, clock, logger } = options;
  const notice = (): void => {
    const missing = Object.keys(informers).filter((name) => informers[name]?.hasSynced === false);
    logger.info({ missing }, 'Waiting for caches to sync');
    timer = clock.after(noticeEveryMs, notice);
  };
  let timer = clock.after(noticeEveryMs, notice);
  try {
    await untilAborted(Promise.all(Object.values(informers).map(({ synced }) => synced)), signal);
  } finally {
    timer.cancel();
  }
}
