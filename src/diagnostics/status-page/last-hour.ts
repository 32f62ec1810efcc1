/** What happened in the last hour: counted here, and drawn here, so that the picture needs no script. */
import type { Clock, Timer } from '../../base/clock.ts';
import { countText, plural } from './html.ts';
import type { ReportedHour, StatusReport } from './status-report.ts';

type CountedEvent = 'made' | 'failed' | 'deleted' | 'deletionsFailed';

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

/** Of a minute, in the units of the drawing; the style sheet stretches it. */
const width = 10;
const height = 50;

interface Chart {
  readonly id: string;
  readonly title: string;
  /** Undefined: not known. */
  readonly values: readonly (number | undefined)[];
  readonly figure: string;
  /** For who does not see the picture. */
  readonly words: string;
  /** What a bar counts, as in `volumes a minute`. */
  readonly unit: string;
}

export function hourSection({ lastHour, atMs }: StatusReport): string {
  if (lastHour === undefined) return '<p class="empty">The leader has the picture of the last hour.</p>';
  const { made, failed, deleted, deletionsFailed, waiting } = lastHour;
  const failures = failed.map((count, index) => count + (deletionsFailed[index] ?? 0));
  const charts = [
    counts('made', 'Volumes made', 'volumes a minute', made),
    counts(
      'failed',
      'Attempts failed',
      'attempts a minute',
      failures,
      `, ${countText(sum(deletionsFailed))} of them to delete a volume`,
    ),
    counts('deleted', 'Volumes deleted', 'volumes a minute', deleted),
    level('waiting', 'Claims waiting', 'claims at a time', waiting),
  ];
  return `<div class="hour">${charts.map((chart) => figure(chart, atMs)).join('')}</div>`;
}

function counts(id: string, title: string, unit: string, values: readonly number[], more = ''): Chart {
  const total = sum(values);
  const most = Math.max(0, ...values);
  const recent = sum(values.slice(-5));
  return {
    id,
    title,
    values,
    figure: countText(total),
    words: `${countText(total)} in ${spanText(values.length)}${more}; at most ${countText(most)} in a minute, ${countText(recent)} in the last 5 minutes.`,
    unit,
  };
}

function level(id: string, title: string, unit: string, values: readonly (number | undefined)[]): Chart {
  const known = values.filter((value) => value !== undefined);
  const now = known.at(-1);
  const common = { id, title, values, unit };
  if (now === undefined) return { ...common, figure: '–', words: 'Not counted yet.' };
  const [most, least] = [Math.max(...known), Math.min(...known)];
  return {
    ...common,
    figure: countText(now),
    words: `${countText(now)} at last, counted once a minute; in ${spanText(values.length)} at most ${countText(most)}, at least ${countText(least)}.`,
  };
}

function figure({ id, title, values, figure: number, words, unit }: Chart, atMs: number): string {
  const most = Math.max(1, ...values.map((value) => value ?? 0));
  const ago = (minutesAgo: number): string => timeText(atMs - minutesAgo * 60_000);
  const data = ` data-unit="${unit}" data-at="${atMs}" data-values="${values.map((value) => value ?? '').join()}"`;
  return `<figure class="${id}"><figcaption>${title} <b>${number}</b> <small>${unit}</small></figcaption>
<div class="plot"><p class="scale" aria-hidden="true"><span>${countText(most)}</span><span>0</span></p>
<svg role="img" aria-labelledby="hour-${id} hour-${id}-words"${data} viewBox="0 0 ${minutes * width} ${height}" preserveAspectRatio="none"><title id="hour-${id}">${title}</title><desc id="hour-${id}-words">${words}</desc><path class="grid" d="M0 1h${minutes * width}M0 ${height / 2}h${minutes * width}"/><path class="base" d="M0 ${height}h${minutes * width}"/><path class="bars" d="${bars(values, most)}"/></svg></div>
<p class="axis" aria-hidden="true"><span>${ago(60)}</span><span>${ago(30)}</span><span>${ago(0)} UTC</span></p></figure>`;
}

/** The outline of a bar for each minute, the last one at the right; any number above 0 can be seen. The script says the time of a bar. */
function bars(values: readonly (number | undefined)[], most: number): string {
  const outline = values.map((value = 0) => {
    const bar = value === 0 ? 0 : Math.max(2, Math.round((value / most) * (height - 2)));
    return `V${height - bar}h${width}`;
  });
  return `M${(minutes - values.length) * width} ${height}${outline.join('')}V${height}z`;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString().slice(11, 16);
}

function spanText(count: number): string {
  return count >= minutes
    ? 'the last hour'
    : `the ${plural(count, 'minute', 'minutes')} since this instance began to work`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
