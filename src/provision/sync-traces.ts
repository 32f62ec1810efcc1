import type { Clock } from '../base/clock.ts';
import { type Span, type SpanAttributes, type Tracer, withinSpan } from '../base/tracing.ts';

/** Objects that may be traced at the same time; what comes beyond them is not. */
const maxTraces = 20_000;

interface SyncTrace {
  readonly whole: Span;
  /** While it waits for a worker for the first time. */
  queued: Span | undefined;
  attempts: number;
}

/** One trace for each object that is synced: the time in its queue, and one span for each attempt. */
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
    this.#traces.set(key, { whole, queued, attempts: 0 });
  }

  /** Does one attempt for an object, as a part of its trace. With the outcome `ignored` there is no trace: it is not ours. */
  async attempt<T extends string>(key: string, work: () => Promise<T>): Promise<T> {
    const trace = this.#traces.get(key);
    if (trace === undefined) return await work();
    const takenMs = this.clock.wallMs();
    trace.attempts += 1;
    const span = trace.whole.child('sync', { attributes: { attempt: trace.attempts } });
    try {
      const outcome = await withinSpan(span, work);
      if (outcome === 'ignored') {
        this.#traces.delete(key);
        return outcome;
      }
      span.note('outcome', { outcome });
      span.end();
      return outcome;
    } catch (error) {
      span.end(error);
      throw error;
    } finally {
      if (this.#traces.has(key)) trace.queued?.end(undefined, takenMs);
      trace.queued = undefined;
    }
  }

  /** The object needs no sync any more. Safe to repeat. */
  settled(key: string): void {
    const trace = this.#traces.get(key);
    if (trace === undefined) return;
    this.#traces.delete(key);
    trace.queued?.end();
    trace.whole.end();
  }

  /** The work ends: what is open ends unfinished, and the next process goes on with the same trace. */
  stop(): void {
    for (const key of [...this.#traces.keys()]) this.settled(key);
  }
}
