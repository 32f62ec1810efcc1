import type { Clock } from '../../base/clock.ts';
import type { ReportedRequests } from './status-report.ts';

const windowMinutes = 5;
const maxSamples = 128;
/** Kinds beyond these are counted together. */
const maxKinds = 64;

/** Counts of one minute. */
interface Minute {
  minute: number;
  count: number;
  failed: number;
}

interface Kind {
  readonly minutes: Minute[];
  /** Durations of the last calls, in seconds; a ring. */
  readonly seconds: Float64Array;
  total: number;
}

/** Rates and latencies of calls of several kinds: a fixed amount of memory for each kind, a few operations for each call. */
export class RecentCalls {
  readonly #clock: Clock;
  readonly #kinds = new Map<string, Kind>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  record(name: string, call: { failed: boolean; seconds: number }): void {
    const kind = this.#kind(name);
    kind.seconds[kind.total % maxSamples] = call.seconds;
    kind.total += 1;
    const minute = this.#minute();
    const slot = (kind.minutes[minute % windowMinutes] ??= { minute, count: 0, failed: 0 });
    if (slot.minute !== minute) Object.assign(slot, { minute, count: 0, failed: 0 });
    slot.count += 1;
    if (call.failed) slot.failed += 1;
  }

  /** Kinds by name, calls to the driver first; those without a call in the last five minutes too. */
  list(): ReportedRequests[] {
    const now = this.#minute();
    const kinds = [...this.#kinds].sort(([a], [b]) => (a < b ? -1 : 1)); // capital letters come first
    return kinds.map(([name, { minutes, seconds, total }]) => {
      const recent = minutes.filter(({ minute }) => minute > now - windowMinutes);
      const sorted = seconds.slice(0, Math.min(total, maxSamples)).sort();
      const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
      return {
        name,
        count: recent.reduce((sum, { count }) => sum + count, 0),
        failed: recent.reduce((sum, { failed }) => sum + failed, 0),
        medianSeconds: at(0.5),
        p95Seconds: at(0.95),
      };
    });
  }

  #kind(name: string): Kind {
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    if (this.#kinds.size >= maxKinds && name !== 'other') return this.#kind('other');
    const kind: Kind = { minutes: [], seconds: new Float64Array(maxSamples), total: 0 };
    this.#kinds.set(name, kind);
    return kind;
  }

  #minute(): number {
    return Math.floor(this.#clock.monotonicMs() / 60_000);
  }
}
