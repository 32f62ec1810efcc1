import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isUnavailable, unreadyReason } from './driver-client.ts';

/** How a driver is waited for. */
export interface DriverWait {
  readonly signal: AbortSignal;
  /** Takes a line for each new reason to wait. */
  readonly report: (text: string) => void;
  /** Limit in milliseconds; default none. */
  readonly limitMs?: number | undefined;
}

const pollMs = 200;

/**
 * Waits until the driver is ready and `read` gets its responses; a call that fails with UNAVAILABLE is repeated.
 *
 * @throws what `read` throws otherwise, and when the limit is over, with the reason of the wait.
 */
export async function whenReady<T>(
  socketPath: string,
  read: () => Promise<T>,
  { signal, report, limitMs }: DriverWait,
): Promise<T> {
  const limit = limitMs === undefined ? undefined : performance.now() + limitMs;
  let reported: string | undefined;
  for (;;) {
    const outcome = await attempt(socketPath, read);
    if ('value' in outcome) return outcome.value;
    const { reason } = outcome;
    if (limit !== undefined && performance.now() > limit) {
      throw new Error(`no CSI driver was ready at ${socketPath} within ${(limitMs ?? 0) / 1000} s: ${reason}`);
    }
    const kind = reason.replaceAll(/\d+/g, ''); // some texts of grpc-js have a time in them
    if (kind !== reported) report(`Waiting for a CSI driver at ${socketPath}: ${reason}. Ctrl-C gives up.`);
    reported = kind;
    await delay(pollMs, undefined, { signal });
  }
}

async function attempt<T>(socketPath: string, read: () => Promise<T>): Promise<{ value: T } | { reason: string }> {
  const reason = existsSync(socketPath) ? await unreadyReason(socketPath) : 'there is no such socket yet';
  if (reason !== undefined) return { reason };
  try {
    return { value: await read() };
  } catch (error) {
    if (isUnavailable(error)) return { reason: (error as Error).message };
    throw error;
  }
}
