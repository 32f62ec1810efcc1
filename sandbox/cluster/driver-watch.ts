import { lstatSync } from 'node:fs';
import { Client, connectivityState, credentials } from '@grpc/grpc-js';
import { setTimeout as delay } from 'node:timers/promises';

/** What `watchDriver` needs. */
export interface DriverWatchOptions {
  readonly socketPath: string;
  /** Waits until the new process responds and registers it, as a kubelet does when a plugin's socket appears again. */
  readonly register: (signal: AbortSignal) => Promise<unknown>;
  readonly report: (text: string) => void;
}

const pollMs = 500;
const maxReconnectMs = 1000;

/**
 * Registers a driver again whenever its socket was made again or takes connections again, until disposed of. It keeps
 * one connection and asks the driver nothing else.
 */
export function watchDriver({ socketPath, register, report }: DriverWatchOptions): AsyncDisposable {
  const stop = new AbortController();
  const watch = async (): Promise<void> => {
    const { signal } = stop;
    using socket = new WatchedSocket(socketPath);
    let known = socket.state();
    for (;;) {
      await delay(pollMs, undefined, { signal }); // rejects at the end
      const current = socket.state();
      if (current === known) continue;
      known = current;
      if (current === 'gone' || current === 'refused') {
        report(
          current === 'gone'
            ? `The driver is gone from ${socketPath}.`
            : `The driver is gone: its socket ${socketPath} is still there, but refuses connections. It may have crashed.`,
        );
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

class WatchedSocket implements Disposable {
  readonly #path: string;
  #identity: string | undefined;
  #connection: Client | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** `gone` without a file, `refused` where nobody listens, otherwise another text for each socket. */
  state(): string {
    const identity = socketIdentity(this.#path);
    if (identity !== this.#identity) this.#connection = this.#reconnected(identity);
    this.#identity = identity;
    if (identity === undefined) return 'gone';
    const state = this.#connection?.getChannel().getConnectivityState(true);
    return state === connectivityState.TRANSIENT_FAILURE ? 'refused' : identity;
  }

  [Symbol.dispose](): void {
    this.#connection?.close();
  }

  #reconnected(identity: string | undefined): Client | undefined {
    this.#connection?.close();
    const options = { 'grpc.max_reconnect_backoff_ms': maxReconnectMs, 'grpc.use_local_subchannel_pool': 1 };
    return identity === undefined ? undefined : new Client(`unix:${this.#path}`, credentials.createInsecure(), options);
  }
}

function socketIdentity(socketPath: string): string | undefined {
  const found = lstatSync(socketPath, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? undefined : `${found.ino} ${found.ctimeNs}`;
}
