import type { Clock, Timer } from '../../base/clock.ts';
import type { ReportedHour } from './status-report.ts';

export type CountedEvent = 'made' | 'failed' | 'deleted' | 'deletionsFailed';

const minutes = 60;
const minuteMs = 60_000;
/** How many claims waited is not known. */
const unknown = -1;

/** What happened in each of the last 60 minutes: five numbers for each, whatever happens. */
export class LastHour implements Disposable {
  readonly #clock: Clock;
  readonly #counts: Readonly<Record<CountedEvent, Uint32Array>> = {
    made: new Uint32Array(minutes),
    failed: new Uint32Array(minutes),
    deleted: new Uint32Array(minutes),
    deletionsFailed: new Uint32Array(minutes),
  };
  readonly #waiting = new Int32Array(minutes).fill(unknown);
  /** The minute that is counted now; each has its place in the arrays by its rest. */
  #minute: number;
  #firstMinute: number;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#minute = this.#nowMinute();
    this.#firstMinute = this.#minute;
  }

  /** Something is counted from now on: minutes before are not known. */
  begin(): void {
    this.#turn();
    this.#firstMinute = this.#minute;
  }

  count(event: CountedEvent): void {
    const place = this.#turn();
    const counts = this.#counts[event];
    counts[place] = (counts[place] ?? 0) + 1;
  }

  /** So many claims wait now; of several numbers in a minute the last one stays. */
  sawWaiting(claims: number): void {
    this.#waiting[this.#turn()] = claims;
  }

  /**
   * Has somebody count the waiting claims once a minute, with a timer that does not keep the process alive, until this is
   * disposed.
   *
   * @param sample - undefined: not known. A rejection counts as that.
   */
  sampleEvery(sample: () => Promise<number | undefined>): void {
    const tick = async (): Promise<void> => {
      const claims = await sample().catch(() => undefined);
      if (claims !== undefined) this.sawWaiting(claims);
      arm();
    };
    const arm = (): void => {
      if (!this.#isStopped) this.#timer = this.#clock.after(minuteMs, () => void tick());
    };
    arm();
  }

  /** Oldest minute first, the last one not over yet. */
  report(): ReportedHour {
    this.#turn();
    const known = Math.min(this.#minute - this.#firstMinute + 1, minutes);
    const places = Array.from({ length: known }, (_, index) => (this.#minute - known + 1 + index) % minutes);
    const of = (numbers: Uint32Array): number[] => places.map((place) => numbers[place] ?? 0);
    return {
      made: of(this.#counts.made),
      failed: of(this.#counts.failed),
      deleted: of(this.#counts.deleted),
      deletionsFailed: of(this.#counts.deletionsFailed),
      waiting: places.map((place) => {
        const claims = this.#waiting[place] ?? unknown;
        return claims === unknown ? undefined : claims;
      }),
    };
  }

  /** Empties the places of minutes that have begun since. @returns the place of the present one. */
  #turn(): number {
    const now = this.#nowMinute();
    for (let minute = Math.max(this.#minute, now - minutes) + 1; minute <= now; minute++) {
      for (const counts of Object.values(this.#counts)) counts[minute % minutes] = 0;
      this.#waiting[minute % minutes] = unknown;
    }
    this.#minute = now;
    return now % minutes;
  }

  #nowMinute(): number {
    return Math.floor(this.#clock.monotonicMs() / minuteMs);
  }

  /** Ends the samples; safe to repeat. */
  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }
}
