import { lstatSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** What `watchDriver` needs. */
export interface DriverWatchOptions {
  readonly socketPath: string;
  /** Waits until the new process responds and registers it, as a kubelet does when a plugin's socket appears again. */
  readonly register: (signal: AbortSignal) => Promise<unknown>;
  readonly report: (text: string) => void;
}

const pollMs = 500;

/** Registers a driver again whenever its socket was made again, until disposed of. It asks the driver nothing else. */
export function watchDriver({ socketPath, register, report }: DriverWatchOptions): AsyncDisposable {
  const stop = new AbortController();
  const watch = async (): Promise<void> => {
    const { signal } = stop;
    let known = socketIdentity(socketPath);
    for (;;) {
      await delay(pollMs, undefined, { signal }); // rejects at the end
      const current = socketIdentity(socketPath);
      if (current === known) continue;
      known = current;
      if (current === undefined) {
        report(`The driver is gone from ${socketPath}.`);
        continue;
      }
      try {
        await register(signal);
        report('The driver is back; its CSINodes are those of its NodeGetInfo now.');
      } catch (error) {
        signal.throwIfAborted();
        report(`The driver is back, but: ${(error as Error).message}`);
      }
    }
  };
  const watching = watch().catch(() => undefined);
  return {
    [Symbol.asyncDispose]: () => {
      stop.abort();
      return watching;
    },
  };
}

function socketIdentity(socketPath: string): string | undefined {
  const found = lstatSync(socketPath, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? undefined : `${found.ino} ${found.ctimeNs}`;
}
