/** Traces of claims, and of deletions. */
import type { Clock } from '../base/clock.ts';
import { shortValue } from '../base/short-value.ts';
import { type Span, type SpanAttributes, type Tracer, withinSpan } from '../base/tracing.ts';
import { claimUid, className } from './claim-fields.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';

/** Max objects that are traced at the same time; further ones are not traced. */
const maxTraces = 20_000;

/** Outcomes of attempts that did nothing for the object: it waits for something else, or another instance serves it. */
const idleOutcomes: ReadonlySet<string> = new Set(['not-now', 'ignored', 'held-back']);
/** Ended spans of such attempts that are kept until something is done. */
const maxHeld = 20;

/** Whose spans they are: no semantic convention has a name for the driver of a volume. */
const provisionerAttribute = 'csi.driver.name';

interface SyncTracesOptions {
  tracer: Tracer;
  /** Of the driver, or of another provisioner. */
  provisionerName: string;
  clock: Clock;
}

interface TracedEnd {
  readonly kind: string;
  readonly error?: unknown;
}

/** The trace of an object that has failed for this long is exported, in milliseconds; a pause between attempts may add five minutes. */
const maxRootMs = 10 * 60_000;

interface SyncTrace {
  whole: Span;
  /** When `whole` began, in milliseconds since the Unix epoch. */
  startMs: number;
  readonly name: string;
  readonly options: { id: string; attributes: SpanAttributes };
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
class SyncTraces {
  readonly #tracer: Tracer;
  protected readonly clock: Clock;
  protected readonly provisionerName: string;
  /** By the key of the queue. */
  readonly #traces = new Map<string, SyncTrace>();

  constructor({ tracer, provisionerName, clock }: SyncTracesOptions) {
    this.#tracer = tracer;
    this.provisionerName = provisionerName;
    this.clock = clock;
  }

  /** An object has been in its queue since `startMs`. Safe to repeat. */
  begin(key: string, name: string, options: { id: string; startMs: number; attributes: SpanAttributes }): void {
    if (this.#traces.has(key) || this.#traces.size >= maxTraces) return;
    const whole = this.#tracer.begin(name, options);
    const queued = whole.child('queue', { startMs: options.startMs });
    const { startMs } = options;
    this.#traces.set(key, { whole, startMs, name, options, queued, attempts: 0, isBusy: false, held: [] });
  }

  /** Does one attempt for an object, as a part of its trace. One that has an error, or rejects, counts as failed. */
  async attempt<T extends TracedEnd>(key: string, work: () => Promise<T>): Promise<T> {
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
      if (outcome.error !== undefined) {
        this.#failed(trace, span, outcome.error);
        return outcome;
      }
      if (!idleOutcomes.has(outcome.kind)) release(trace);
      span.set({ outcome: outcome.kind });
      const endMs = this.clock.wallMs();
      end(trace, () => span.end(undefined, endMs));
      return outcome;
    } catch (error) {
      this.#failed(trace, span, error);
      throw error;
    } finally {
      trace.isBusy = false;
    }
  }

  #failed(trace: SyncTrace, span: Span, error: unknown): void {
    release(trace);
    span.set({ outcome: 'failed' });
    span.end(error);
    this.#exportRoot(trace, error);
  }

  /** A root span is exported only once it ends: while an object keeps failing, its root is ended from time to time and followed by another. */
  #exportRoot(trace: SyncTrace, error: unknown): void {
    const nowMs = this.clock.wallMs();
    if (nowMs - trace.startMs < maxRootMs) return;
    trace.whole.set({ outcome: 'failing', attempts: trace.attempts });
    trace.whole.end(error);
    trace.startMs = nowMs;
    trace.whole = this.#tracer.begin(trace.name, { ...trace.options, startMs: nowMs, after: trace.whole });
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

/** Something was done, or failed: the trace is exported. */
function release(trace: SyncTrace): void {
  for (const endSpan of trace.held ?? []) endSpan();
  trace.held = undefined;
}

/** One trace for each claim, from the watch event that shows it without a volume until it is bound or gone. By UID. */
export class ClaimTraces extends SyncTraces {
  readonly #volumeName: (claim: PersistentVolumeClaim) => string;

  constructor(options: SyncTracesOptions & { volumeName: (claim: PersistentVolumeClaim) => string }) {
    super(options);
    this.#volumeName = options.volumeName;
  }

  /** A watch event has shown a claim that needs a sync. Safe to repeat. */
  seen(claim: PersistentVolumeClaim): void {
    const uid = claimUid(claim);
    const { namespace = '', name } = claim.metadata;
    this.begin(uid, `claim ${namespace}/${name}`, {
      id: uid,
      startMs: this.clock.wallMs(),
      attributes: {
        'k8s.persistentvolumeclaim.uid': uid,
        'k8s.persistentvolumeclaim.name': name,
        'k8s.namespace.name': namespace,
        'k8s.storageclass.name': shortValue(className(claim)),
        'k8s.persistentvolume.name': this.#volumeName(claim),
        [provisionerAttribute]: this.provisionerName,
      },
    });
  }
}

/** Max volumes whose time in the queue is noted; beyond them it is not traced. */
const maxQueued = 20_000;

/** One trace for each volume whose storage is deleted, from the watch event that shows it released until it is gone. By name. */
export class DeletionTraces extends SyncTraces {
  /** When a volume that may be deleted entered the queue, in milliseconds since the Unix epoch, by name. */
  readonly #queuedMs = new Map<string, number>();

  /** A watch event has shown a volume that may have to be deleted. Safe to repeat. */
  seen({ metadata: { name } }: PersistentVolume): void {
    if (this.#queuedMs.size < maxQueued && !this.#queuedMs.has(name)) this.#queuedMs.set(name, this.clock.wallMs());
  }

  /** Deletes a volume, as a part of its trace. */
  async deletion<T extends TracedEnd>(volume: PersistentVolume, work: () => Promise<T>): Promise<T> {
    const { name, uid = '' } = volume.metadata;
    this.begin(name, `delete volume ${name}`, {
      id: uid,
      startMs: this.#queuedMs.get(name) ?? this.clock.wallMs(),
      attributes: {
        'k8s.persistentvolume.name': name,
        'k8s.persistentvolume.uid': uid,
        'k8s.storageclass.name': volume.spec.storageClassName ?? '',
        [provisionerAttribute]: this.provisionerName,
        ...claimAttributes(volume),
      },
    });
    return this.attempt(name, work);
  }

  override settled(name: string): void {
    this.#queuedMs.delete(name);
    super.settled(name);
  }
}

/** The claim whose volume it was: its trace shows how the volume was created. */
function claimAttributes({ spec: { claimRef } }: PersistentVolume): Record<string, string> {
  if (claimRef === undefined) return {};
  const { namespace = '', name = '', uid = '' } = claimRef;
  return {
    'k8s.namespace.name': namespace,
    'k8s.persistentvolumeclaim.name': name,
    'k8s.persistentvolumeclaim.uid': uid,
  };
}
