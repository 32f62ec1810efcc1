import { type Span, type Tracer, withinSpan } from '../base/tracing.ts';
import type { Clock } from '../base/clock.ts';
import { claimUid, className } from './claim-facts.ts';
import type { PersistentVolumeClaim } from './objects.ts';

/** Claims that may be traced at the same time; what comes beyond them is not. */
const maxTraces = 20_000;

interface ClaimTrace {
  readonly whole: Span;
  /** While it waits for a worker for the first time. */
  queued: Span | undefined;
  attempts: number;
}

/** One trace for each claim, from the watch event that shows it without a volume until it is bound or gone. */
export class ClaimTraces {
  readonly #tracer: Tracer;
  readonly #clock: Clock;
  /** By UID. */
  readonly #traces = new Map<string, ClaimTrace>();

  constructor({ tracer, clock }: { tracer: Tracer; clock: Clock }) {
    this.#tracer = tracer;
    this.#clock = clock;
  }

  /** A watch event has shown a claim that needs a sync. Safe to repeat. */
  seen(claim: PersistentVolumeClaim): void {
    const uid = claimUid(claim);
    if (this.#traces.has(uid) || this.#traces.size >= maxTraces) return;
    const { namespace = '', name } = claim.metadata;
    const whole = this.#tracer.begin(`claim ${namespace}/${name}`, {
      id: uid,
      startMs: this.#clock.wallMs(),
      attributes: {
        'k8s.persistentvolumeclaim.uid': uid,
        'k8s.persistentvolumeclaim.name': name,
        'k8s.namespace.name': namespace,
        'k8s.storageclass.name': className(claim),
      },
    });
    this.#traces.set(uid, { whole, queued: whole.child('queue'), attempts: 0 });
  }

  /** Does one attempt for a claim, as a part of its trace. */
  async attempt<T extends string>(uid: string, work: () => Promise<T>): Promise<T> {
    const trace = this.#traces.get(uid);
    if (trace === undefined) return await work();
    trace.queued?.end();
    trace.queued = undefined;
    trace.attempts += 1;
    const span = trace.whole.child('sync', { attributes: { attempt: trace.attempts } });
    try {
      const outcome = await withinSpan(span, work);
      span.note('outcome', { outcome });
      span.end();
      return outcome;
    } catch (error) {
      span.end(error);
      throw error;
    }
  }

  /** The claim is bound or gone. Safe to repeat. */
  settled(uid: string): void {
    const trace = this.#traces.get(uid);
    if (trace === undefined) return;
    this.#traces.delete(uid);
    trace.queued?.end();
    trace.whole.end();
  }

  /** The work ends: what is open ends unfinished, and the next process goes on with the same trace. */
  stop(): void {
    for (const uid of [...this.#traces.keys()]) this.settled(uid);
  }
}
