import type { Clock } from '../../src/base/clock.ts';
import type { SandboxClient, SandboxObject } from '../api/client.ts';

/** What an `EventRecorder` needs. */
export interface EventRecorderOptions {
  client: SandboxClient;
  clock: Clock;
  /** The event's source, such as `persistentvolume-controller`. */
  component: string;
}

/** Events per object before the filter bites. */
const burst = 25;
/** One more event per object after this long. */
const refillMs = 300_000;
/** Objects remembered; the longest unused one is forgotten first. */
const rememberedObjects = 4096;

/**
 * Records events of one component and holds back what one object repeats too often: 25 events, then one per 300
 * seconds. Without it every resync of a claim that waits for long would be a write.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #budgets = new Map<string, { tokens: number; atMs: number }>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  normal(about: SandboxObject, reason: string, message: string): void {
    this.#record(about, 'Normal', reason, message);
  }

  warning(about: SandboxObject, reason: string, message: string): void {
    this.#record(about, 'Warning', reason, message);
  }

  #record(about: SandboxObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (!this.#spend(about.metadata.uid ?? about.metadata.name)) return;
    const { client, component } = this.#options;
    client.recordEvent(about, type, reason, message, component);
  }

  #spend(key: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const { tokens, atMs } = this.#budgets.get(key) ?? { tokens: burst, atMs: nowMs };
    const available = Math.min(burst, tokens + (nowMs - atMs) / refillMs);
    const granted = available >= 1;
    this.#budgets.delete(key); // the map's order is the order of use
    this.#budgets.set(key, { tokens: granted ? available - 1 : available, atMs: nowMs });
    if (this.#budgets.size > rememberedObjects) {
      const oldest = this.#budgets.keys().next();
      if (oldest.done !== true) this.#budgets.delete(oldest.value);
    }
    return granted;
  }
}
