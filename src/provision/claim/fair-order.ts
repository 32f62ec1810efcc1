/** The order in which claims are synced. */
import type { Clock } from '../../base/clock.ts';
import { LruMap } from '../../kube/lru-map.ts';
import type { WaitingOrder } from '../../kube/queue/waiting-order.ts';

/** The claims of one namespace and class, which share their turns. */
export interface Flow {
  readonly namespace: string;
  readonly className: string;
}

interface Turn {
  readonly key: string;
  readonly flow: Flow;
}

interface TurnLimits {
  isFull: (namespace: string) => boolean;
  mayTake: (flow: Flow) => boolean;
}

/** Waiting keys; namespaces take turns, and so do the classes in each. */
export class ClaimTurns {
  readonly #namespaces = new Map<string, Map<string, Set<string>>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(key: string, { namespace, className }: Flow): void {
    const classes = this.#namespaces.get(namespace) ?? new Map<string, Set<string>>();
    const keys = classes.get(className) ?? new Set<string>();
    this.#size += keys.has(key) ? 0 : 1;
    this.#namespaces.set(namespace, classes.set(className, keys.add(key)));
  }

  /**
   * Takes the next key of a flow that `mayTake` allows. Its namespace and class then go behind all others.
   *
   * @param limits.isFull - whether `mayTake` allows no class of the namespace: then it is not called for any.
   */
  take({ isFull, mayTake }: TurnLimits): Turn | undefined {
    for (const [namespace, classes] of this.#namespaces) {
      if (isFull(namespace)) continue;
      for (const [className, keys] of classes) {
        const flow = { namespace, className };
        if (!mayTake(flow)) continue;
        moveToEnd(classes, className);
        moveToEnd(this.#namespaces, namespace);
        return this.#takeFirst(keys, flow);
      }
    }
    return undefined;
  }

  /** Removes all keys of a flow and returns them in their order. */
  removeFlow({ namespace, className }: Flow): Iterable<string> {
    const keys = this.#namespaces.get(namespace)?.get(className) ?? new Set<string>();
    this.#size -= keys.size;
    this.#drop({ namespace, className });
    return keys;
  }

  /** Takes out all keys. */
  clear(): Turn[] {
    const all = [...this.#namespaces].flatMap(([namespace, classes]) =>
      [...classes].flatMap(([className, keys]) => [...keys].map((key) => ({ key, flow: { namespace, className } }))),
    );
    this.#namespaces.clear();
    this.#size = 0;
    return all;
  }

  #takeFirst(keys: Set<string>, flow: Flow): Turn | undefined {
    for (const key of keys) {
      keys.delete(key);
      this.#size--;
      if (keys.size === 0) this.#drop(flow);
      return { key, flow };
    }
    return undefined;
  }

  #drop({ namespace, className }: Flow): void {
    const classes = this.#namespaces.get(namespace);
    classes?.delete(className);
    if (classes?.size === 0) this.#namespaces.delete(namespace);
  }
}

function moveToEnd<T>(map: Map<string, T>, key: string): void {
  const value = map.get(key);
  if (value === undefined || map.size === 1) return;
  map.delete(key);
  map.set(key, value);
}

interface FairOrderOptions {
  /** Max claims processed at the same time. */
  workers: number;
  /** Returns namespace and class of the claim with this key. */
  flowOf: (key: string) => Flow;
  /** Returns the number of consecutive failed attempts of the claim with this key. */
  failures: (key: string) => number;
  clock: Clock;
}

/** Max first attempts between two retries while a retry waits. */
const maxFirstsInRow = 3;
/** A namespace that has this many times the number of free workers gets no further one. */
const maxHeldToFree = 4;
/** The same for a class that has no worker yet, so that one slow class does not delay the others of its namespace. */
const maxHeldToFreeOfNewClass = 8;
/** A namespace that has been the only one for this long may have all workers, in milliseconds. */
const aloneMs = 1000;
/** After this many consecutive failures the retries of a flow are rate-limited ("paced"). */
const failingFrom = 50;
/** Max retries of all failing flows together in each `paceMs`: one wake-up for several costs less than one for each. */
const paceCount = 20;
const paceMs = 200;
/** Max flows whose consecutive failures are counted. */
const maxStreaks = 4096;

/**
 * The order of claims, in which the failures of one namespace delay the claims of others as little as possible.
 *
 * - Namespaces take turns, and so do the classes in each.
 * - First attempts go before retries, but at most three of them in a row while a retry waits.
 * - The more workers a namespace has, the more must remain free: it gets another one only while it has fewer than four
 *   times as many as are free. So some stay free for namespaces that come later, even if all calls hang. A namespace
 *   that has been the only one for a second may have all.
 * - Once 50 attempts of a namespace and class have failed in a row, its retries are limited, together with those of all
 *   other such flows, to 100 per second, until one of its attempts provisions a volume. So an outage of the backend costs
 *   little CPU.
 */
export class FairOrder implements WaitingOrder {
  readonly #options: FairOrderOptions;
  readonly #firsts = new ClaimTurns();
  readonly #retries = new ClaimTurns();
  /** Retries of failing flows, which are rate-limited. */
  readonly #paced = new ClaimTurns();
  readonly #taken = new Map<string, Flow>();
  /** How many keys are taken, by namespace and by flow. */
  readonly #held = new Map<string, number>();
  /** How many keys wait or are taken, by namespace. */
  readonly #present = new Map<string, number>();
  /** Failures since the last success, by flow. */
  readonly #streaks = new LruMap<number>(maxStreaks);
  /** Keys in progress whose attempt has succeeded. */
  readonly #succeeded = new Set<string>();
  #aloneSinceMs = -Infinity;
  #pacedFromMs = -Infinity;
  #pacedCount = 0;
  #wasPaced = false;
  #firstsInRow = 0;
  #nextAtMs: number | undefined;
  #ending = false;

  constructor(options: FairOrderOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#firsts.size + this.#retries.size + this.#paced.size;
  }

  get nextAtMs(): number | undefined {
    return this.#nextAtMs;
  }

  add(key: string): void {
    const flow = this.#options.flowOf(key);
    this.#count(this.#present, flow.namespace, 1);
    if (this.#options.failures(key) === 0) this.#firsts.add(key, flow);
    else if (this.#isFailing(flow)) this.#paced.add(key, flow);
    else this.#retries.add(key, flow);
  }

  take(): string | undefined {
    this.#nextAtMs = undefined;
    const next = this.#next();
    if (next === undefined) return undefined;
    this.#taken.set(next.key, next.flow);
    this.#hold(next.flow, 1);
    return next.key;
  }

  /**
   * The attempt for a key in progress has provisioned a volume. To be called before `done`: an end without failure can also mean
   * that the claim is gone or that there was nothing to do, and a tenant can cause that at any time.
   */
  succeeded(key: string): void {
    if (this.#taken.has(key)) this.#succeeded.add(key);
  }

  done(key: string): void {
    const flow = this.#taken.get(key);
    if (flow === undefined) return;
    this.#taken.delete(key);
    this.#hold(flow, -1);
    this.#count(this.#present, flow.namespace, -1);
    if (this.#succeeded.delete(key)) this.#endStreak(flow);
    else if (this.#options.failures(key) > 0) this.#failed(flow);
  }

  /** The cause of the failures is gone. */
  retryAll(): void {
    this.#streaks.clear();
    for (const { key, flow } of this.#paced.clear()) this.#retries.add(key, flow);
  }

  end(): void {
    this.#ending = true;
  }

  #next(): Turn | undefined {
    const turns =
      this.#firstsInRow < maxFirstsInRow ? [this.#takeFirst, this.#takeRetry] : [this.#takeRetry, this.#takeFirst];
    for (const turn of turns) {
      const next = turn.call(this);
      if (next !== undefined) return next;
    }
    return undefined;
  }

  #takeFirst(): Turn | undefined {
    const next = this.#takeFrom(this.#firsts);
    if (next !== undefined) this.#firstsInRow = this.#retries.size + this.#paced.size === 0 ? 0 : this.#firstsInRow + 1;
    return next;
  }

  #takeRetry(): Turn | undefined {
    const turns = this.#isPacedDue() ? [this.#paced, this.#retries] : [this.#retries];
    if (this.#wasPaced) turns.reverse();
    for (const turn of turns) {
      const next = this.#takeFrom(turn);
      if (next === undefined) continue;
      this.#wasPaced = turn === this.#paced;
      if (this.#wasPaced) this.#pace();
      this.#firstsInRow = 0;
      return next;
    }
    return undefined;
  }

  #isPacedDue(): boolean {
    if (this.#paced.size === 0) return false;
    return this.#ending || this.#pacedCount < paceCount || this.#isTime(this.#pacedFromMs + paceMs);
  }

  /** Counts one of the rate-limited retries. */
  #pace(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const isOver = nowMs >= this.#pacedFromMs + paceMs;
    if (isOver) this.#pacedFromMs = nowMs;
    this.#pacedCount = isOver ? 1 : this.#pacedCount + 1;
  }

  #takeFrom(turns: ClaimTurns): Turn | undefined {
    return turns.take({
      isFull: (namespace) => !this.#mayHave(namespace, maxHeldToFreeOfNewClass),
      mayTake: (flow) =>
        this.#mayHave(flow.namespace, this.#held.has(flowKey(flow)) ? maxHeldToFree : maxHeldToFreeOfNewClass),
    });
  }

  /** Whether the namespace may get one more worker. */
  #mayHave(namespace: string, maxToFree: number): boolean {
    const held = this.#held.get(namespace) ?? 0;
    const free = this.#options.workers - this.#taken.size;
    const isAlone = this.#present.size === 1;
    if (this.#ending) return true;
    if (free <= 0) return false;
    if (held === 0) return true;
    if (held < maxToFree * free && (free > 1 || isAlone)) return true;
    return isAlone && this.#isTime(this.#aloneSinceMs + aloneMs);
  }

  /** Whether that time has come; if not, the queue calls `take` again then. */
  #isTime(atMs: number): boolean {
    if (this.#options.clock.monotonicMs() >= atMs) return true;
    this.#nextAtMs = Math.min(this.#nextAtMs ?? Infinity, atMs);
    return false;
  }

  #hold(flow: Flow, by: 1 | -1): void {
    this.#count(this.#held, flow.namespace, by);
    this.#count(this.#held, flowKey(flow), by);
  }

  #count(counts: Map<string, number>, key: string, by: 1 | -1): void {
    const count = (counts.get(key) ?? 0) + by;
    if (count === 0) counts.delete(key);
    else counts.set(key, count);
    const changed = count === (by === 1 ? 1 : 0);
    if (counts === this.#present && changed && counts.size === 1)
      this.#aloneSinceMs = this.#options.clock.monotonicMs();
  }

  #isFailing(flow: Flow): boolean {
    return (this.#streaks.get(flowKey(flow)) ?? 0) >= failingFrom;
  }

  #failed(flow: Flow): void {
    const key = flowKey(flow);
    this.#streaks.set(key, (this.#streaks.get(key) ?? 0) + 1);
  }

  #endStreak(flow: Flow): void {
    const wasFailing = this.#isFailing(flow);
    this.#streaks.delete(flowKey(flow));
    if (wasFailing) for (const key of this.#paced.removeFlow(flow)) this.#retries.add(key, flow);
  }
}

/** Never equals a namespace, whose name has no slash. */
function flowKey({ namespace, className }: Flow): string {
  return `${namespace}/${className}`;
}
