/**
 * Long work in slices. Node.js runs everything on one thread: while it goes through thousands of objects no timer fires,
 * no lease is renewed and no probe gets a response. Code that works through many items checks before each of them:
 *
 *     if (sliceSpent()) await nextSlice();
 */

/** How long work may hold the event loop, in milliseconds. */
const sliceMs = 10;

/** When the present slice began; undefined while there is no work. One for all work, as there is one event loop. */
let startedMs: number | undefined;
/** The work that waits for a slice, oldest first. */
const waiting: PromiseWithResolvers<undefined>[] = [];

/** Whether the work of this iteration of the event loop, of all callers together, has taken its time. */
export function sliceSpent(): boolean {
  const nowMs = performance.now();
  startedMs ??= begin(nowMs);
  return nowMs - startedMs >= sliceMs;
}

/** Resolves in a later iteration of the event loop, after timers and connections, in the order of the calls. */
export function nextSlice(): Promise<undefined> {
  startedMs ??= begin(performance.now());
  const caller = Promise.withResolvers<undefined>();
  waiting.push(caller);
  return caller.promise;
}

/** Calls `each` for every item, in slices. The first call is made at once, unless the slice is spent. */
export async function inSlices<T>(items: Iterable<T>, each: (item: T) => void): Promise<void> {
  for (const item of items) {
    if (sliceSpent()) await nextSlice();
    each(item);
  }
}

function begin(nowMs: number): number {
  setImmediate(() => void serve());
  return nowMs;
}

async function serve(): Promise<void> {
  startedMs = undefined;
  for (let caller = waiting.shift(); caller !== undefined; caller = sliceSpent() ? undefined : waiting.shift()) {
    startedMs ??= begin(performance.now());
    caller.resolve(undefined);
    await caller.promise; // the caller waits for it longer than we do, so its piece of work is done first
  }
}
