/**
 * In which order single requests are sent, and how many at a time. Each request under way needs a connection, whose buffers take
 * memory, so there are few until the server turns out to be slow. Requests that can wait, such as events, give way to others.
 */
import type { Clock } from '../../base/clock.ts';
import type { RequestOptions } from './request.ts';

/** Max requests under way while the server responds quickly. */
const fewest = 16;
/** Once a request has waited for so long, twice as many may be under way; in milliseconds. */
const patienceMs = 250;
/** Once the half was enough for so long, fewer may be under way again; in milliseconds. */
const restMs = 10_000;
/** Requests that give way are sent while fewer others than this are under way. */
const quiet = 4;

/** Which requests go first. */
type Lane = Pick<RequestOptions, 'yieldsUntilMs' | 'waitsForNone'>;

/** A request under way or waiting. */
export interface Place {
  /** Resolves when the request may be sent; undefined: now. */
  readonly admitted: Promise<undefined> | undefined;
  /** Ends the request, or its wait. To be called once. */
  leave(): void;
}

interface Turn {
  /** Until when it gives way to others; undefined: it gives way to none. */
  readonly untilMs: (() => number) | undefined;
}

interface Waiting extends Turn {
  readonly sinceMs: number;
  readonly admit: () => void;
}

export class RequestLanes {
  readonly #clock: Clock;
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>();
  /** Those that give way, in order of arrival. */
  readonly #yielding = new Set<Waiting>();
  #underWay = 0;
  /** Of these, those that do not give way. */
  #others = 0;
  /** How many may be under way. */
  #most = fewest;
  /** When more than half of these were last under way. */
  #busyAtMs = 0;
  #isTimerSet = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes a place for a request.
   *
   * @param lane - as of `RequestOptions`.
   */
  enter({ yieldsUntilMs: untilMs, waitsForNone = false }: Lane = {}): Place {
    const nowMs = this.#clock.monotonicMs();
    this.#shrink(nowMs);
    const lane = untilMs === undefined ? this.#waiting : this.#yielding;
    if (waitsForNone || (lane.size === 0 && this.#mayBegin({ untilMs }, nowMs))) {
      this.#begin({ untilMs }, nowMs);
      return { admitted: undefined, leave: () => this.#end({ untilMs }) };
    }
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const request: Waiting = { sinceMs: nowMs, untilMs, admit: () => resolve(undefined) };
    lane.add(request);
    this.#lookLater();
    return {
      admitted: promise,
      leave: () => {
        if (!lane.delete(request)) this.#end(request);
      },
    };
  }

  #mayBegin({ untilMs }: Turn, nowMs: number): boolean {
    if (this.#underWay >= this.#most) return false;
    if (untilMs === undefined) return true;
    return untilMs() <= nowMs || (this.#waiting.size === 0 && this.#others < quiet);
  }

  #begin({ untilMs }: Turn, nowMs: number): void {
    this.#underWay++;
    if (untilMs === undefined) this.#others++;
    if (this.#underWay > this.#most / 2) this.#busyAtMs = nowMs;
  }

  #end({ untilMs }: Turn): void {
    this.#underWay--;
    if (untilMs === undefined) this.#others--;
    this.#admit(this.#clock.monotonicMs());
  }

  #admit(nowMs: number): void {
    for (let next = this.#next(nowMs); next !== undefined && this.#mayBegin(next, nowMs); next = this.#next(nowMs)) {
      this.#waiting.delete(next);
      this.#yielding.delete(next);
      this.#begin(next, nowMs);
      next.admit();
    }
  }

  /** One whose time to give way is over has its turn as if it had come then. */
  #next(nowMs: number): Waiting | undefined {
    const [first] = this.#waiting;
    const due = this.#due(nowMs);
    if (due !== undefined && (first === undefined || due.sinceMs <= first.sinceMs)) return due.request;
    const [yielding] = this.#yielding;
    return first ?? yielding;
  }

  /** The first whose time to give way is over, and since when. */
  #due(nowMs: number): { request: Waiting; sinceMs: number } | undefined {
    for (const request of this.#yielding) {
      const sinceMs = request.untilMs?.() ?? 0;
      if (sinceMs <= nowMs) return { request, sinceMs };
    }
    return undefined;
  }

  /** Called now and then while requests wait. */
  #look(): void {
    const nowMs = this.#clock.monotonicMs();
    const [first] = this.#waiting;
    const waitsSinceMs = Math.min(first?.sinceMs ?? Infinity, this.#due(nowMs)?.sinceMs ?? Infinity);
    if (this.#underWay >= this.#most && nowMs - waitsSinceMs >= patienceMs) this.#most *= 2;
    this.#admit(nowMs);
    if (this.#waiting.size + this.#yielding.size > 0) this.#lookLater();
  }

  #lookLater(): void {
    if (this.#isTimerSet) return;
    this.#isTimerSet = true;
    this.#clock.after(patienceMs, () => {
      this.#isTimerSet = false;
      this.#look();
    });
  }

  #shrink(nowMs: number): void {
    if (nowMs - this.#busyAtMs <= restMs) return;
    while (this.#most > fewest && this.#underWay <= this.#most / 2) this.#most /= 2;
  }
}
