import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { unreadyReason } from '../cluster/driver-client.ts';

const pollMs = 100;

export interface WaitOptions {
  readonly socketPath: string;
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly report: (text: string) => void;
}

/** Waits until the driver's Probe says that it is ready. @throws when it is not in time, with the last reason. */
export async function waitForDriver({ socketPath, waitMs, signal, report }: WaitOptions): Promise<void> {
  const end = Date.now() + waitMs;
  for (let round = 0; ; round++) {
    signal.throwIfAborted();
    const reason = existsSync(socketPath) ? await unreadyReason(socketPath) : 'there is no such socket';
    if (reason === undefined) return;
    if (Date.now() > end)
      throw new Error(
        `no CSI driver is ready at ${socketPath} after ${waitMs / 1000} s (--wait): ${reason.trim().replace(/\s*Resolution note:$/, '')}`,
      );
    if (round === 0) report(`Waiting for a CSI driver at ${socketPath}: ${reason}`);
    await delay(pollMs);
  }
}
