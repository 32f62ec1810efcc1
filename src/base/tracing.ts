/**
 * Spans of a trace, independent of how they are exported. The span of the work under way travels with its promises; where there
 * is none, which is always so while nothing is traced, everything here does nothing.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** Attributes of a span. Never a secret: they may leave the cluster. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** One piece of work in a trace. */
export interface Span {
  /** For the header of that name (W3C, "Trace Context"). */
  readonly traceparent: string;
  /** Begins a part of this work, which also gets the attributes with which the trace was begun. It may end later than the whole. */
  child(name: string, options?: { attributes?: SpanAttributes; isCall?: boolean; startMs?: number }): Span;
  /** What became known while it was under way; its parts do not get these. */
  set(attributes: SpanAttributes): void;
  /**
   * Ends it; further calls do nothing. One that is never ended is never exported.
   *
   * @param error - what it failed with; absent: it succeeded.
   * @param endMs - when it ended, in milliseconds since the Unix epoch; default: now.
   */
  end(error?: unknown, endMs?: number): void;
}

/** Begins traces. */
export interface Tracer {
  /**
   * @param options.id - a UID: the same id gives the same trace, also in another process.
   * @param options.startMs - milliseconds since the Unix epoch.
   * @param options.attributes - of all its spans.
   * @param options.after - what was traced of the same work before, and has ended.
   */
  begin(name: string, options: { id: string; startMs: number; attributes: SpanAttributes; after?: Span }): Span;
}

/** A key of the context, as the parameter of a function would be; it holds nothing by itself. */
const active = new AsyncLocalStorage<Span | undefined>();

/** The span of the work that the caller is part of. */
export function activeSpan(): Span | undefined {
  return active.getStore();
}

/** Does work as that of a span, which goes on afterwards. */
export function withinSpan<T>(span: Span, work: () => T): T {
  return active.run(span, work);
}

/** Does work outside the active span, and so all that it starts: work for many callers may go on after that span has ended. */
export function outsideSpans<T>(work: () => T): T {
  return activeSpan() === undefined ? work() : active.run(undefined, work);
}

/**
 * Does work as a part of the active span; just does it where there is none.
 *
 * @param options.attributes - a function is only called where there is a span.
 */
export async function traced<T>(
  name: string,
  work: () => Promise<T>,
  { attributes = {}, isCall = false }: { attributes?: SpanAttributes | (() => SpanAttributes); isCall?: boolean } = {},
): Promise<T> {
  const parent = activeSpan();
  if (parent === undefined) return await work();
  const known = typeof attributes === 'function' ? attributes() : attributes;
  const span = parent.child(name, { attributes: known, isCall });
  try {
    const result = await active.run(span, work);
    span.end();
    return result;
  } catch (error) {
    span.end(error);
    throw error;
  }
}
