import type { Clock } from '../../base/clock.ts';
import { type Span, type SpanAttributes, type Tracer, withinSpan } from '../../base/tracing.ts';

/** Max objects that are traced at the same time; further ones are not traced. */
const maxTraces = 20_000;

/** Outcomes of attempts that did nothing for the object: it waits for something else, or another instance serves it. */
const idleOutcomes: ReadonlySet<string> = new Set(['not-now', 'ignored']);
/** Ended spans of such attempts that are kept until something is done. */
const maxHeld = 20;

interface SyncTrace {
  readonly whole: Span;
  /** While it waits for a worker for the first time. */
  queued: Span | undefined;
  attempts: number;
  /** An attempt is under way. */
  isBusy: boolean;
  /** Ends spans that are exported only once something was done for the object; undefined from then on. */
  held: (() => void)[] | undefined;
}

/**
 * One trace for each object that is synced: the time in its queue, and one span for each attempt. There is none for an object
 * for which nothing was done: in node deployment every node sees every claim.
 */
export class SyncTraces {
  readonly #tracer: Tracer;
  protected readonly clock: Clock;
  /** By the key of the queue. */
  readonly #traces = new Map<string, SyncTrace>();

  constructor({ tracer, clock }: { tracer: Tracer; clock: Clock }) {
    this.#tracer = tracer;
    this.clock = clock;
  }

  /** An object has been in its queue since `startMs`. Safe to repeat. */
  begin(key: string, name: string, options: { id: string; startMs: number; attributes: SpanAttributes }): void {
    if (this.#traces.has(key) || this.#traces.size >= maxTraces) return;
    const whole = this.#tracer.begin(name, options);
    const queued = whole.child('queue', { startMs: options.startMs });
    this.#traces.set(key, { whole, queued, attempts: 0, isBusy: false, held: [] });
  }

  /** Does one attempt for an object, as a part of its trace. */
  async attempt<T extends string>(key: string, work: () => Promise<T>): Promise<T> {
    const trace = this.#traces.get(key);
    if (trace === undefined) return await work();
    const takenMs = this.clock.wallMs();
    const { queued } = trace;
    trace.queued = undefined;
    if (queued !== undefined) end(trace, () => queued.end(undefined, takenMs));
    trace.attempts += 1;
    trace.isBusy = true;
    const span = trace.whole.child('sync', { attributes: { attempt: trace.attempts } });
    try {
      const outcome = await withinSpan(span, work);
      if (!idleOutcomes.has(outcome)) release(trace);
      span.note('outcome', { outcome });
      const endMs = this.clock.wallMs();
      end(trace, () => span.end(undefined, endMs));
      return outcome;
    } catch (error) {
      release(trace);
      span.end(error);
      throw error;
    } finally {
      trace.isBusy = false;
    }
  }

  /** The object needs no sync any more. Safe to repeat. */
  settled(key: string): void {
    const trace = this.#traces.get(key);
    if (trace === undefined) return;
    this.#traces.delete(key);
    if (trace.isBusy) release(trace); // in the middle of an attempt
    if (trace.held !== undefined) return;
    trace.queued?.end();
    trace.whole.end();
  }

  /** The process stops: open traces end unfinished, and the next process goes on with the same trace ids. */
  stop(): void {
    for (const key of [...this.#traces.keys()]) this.settled(key);
  }
}

/** Ends a span now, or once something was done for the object. */
function end({ held }: SyncTrace, endSpan: () => void): void {
  if (held === undefined) endSpan();
  else if (held.length < maxHeld) held.push(endSpan);
}

/** Something was done, or failed: the trace is to be seen. */
function release(trace: SyncTrace): void {
  for (const endSpan of trace.held ?? []) endSpan();
  trace.held = undefined;
}
