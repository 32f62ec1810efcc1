import type { Clock, Timer } from '../../src/base/clock.ts';
import type { SandboxObject } from './client.ts';
import { copyJson } from './json.ts';
import type { ObjectRegistry } from './object-registry.ts';
import type { ResourceTypes } from './resource-type.ts';
import type { Revision } from './revision.ts';
import { StatusError } from './status-error.ts';
import type { Store } from './store.ts';
import { timestamp } from './timestamps.ts';

/** How many folded events are remembered. */
const memory = 4096;

/** Records events for the controllers of this process and folds repeats into a count. */
export class EventRecording {
  readonly #registry: ObjectRegistry;
  readonly #types: ResourceTypes;
  readonly #clock: Clock;
  /** Name of the stored event by what makes a repeat. */
  readonly #known = new Map<string, string>();
  #serial = 0;

  constructor(options: { registry: ObjectRegistry; types: ResourceTypes; clock: Clock }) {
    this.#registry = options.registry;
    this.#types = options.types;
    this.#clock = options.clock;
  }

  /** Stores the event or raises the count of the stored one; one that cannot be stored is dropped. */
  record(about: SandboxObject, type: 'Normal' | 'Warning', reason: string, message: string, component: string): void {
    const { name, namespace = '', uid = '' } = about.metadata;
    const key = JSON.stringify([component, about.kind, namespace, name, uid, type, reason, message]);
    const of = this.#types.find({ group: '', version: 'v1', plural: 'events' });
    if (of === undefined) return;
    const eventNamespace = namespace === '' ? 'default' : namespace;
    try {
      const known = this.#known.get(key);
      if (known !== undefined && this.#repeat({ ...of, namespace: eventNamespace, name: known })) return;
      const event = this.#event(about, type, reason, message, component);
      this.#registry.create(of, eventNamespace, event);
      this.#known.set(key, event.metadata.name);
      const oldest = this.#known.keys().next();
      if (this.#known.size > memory && oldest.done !== true) this.#known.delete(oldest.value);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
    }
  }

  /** False if the event is gone, so that a new one is due. */
  #repeat(target: Parameters<ObjectRegistry['patch']>[0]): boolean {
    try {
      this.#registry.patch(target, (current) => ({
        ...current,
        count: Number(current['count'] ?? 1) + 1,
        lastTimestamp: timestamp(this.#clock.wallMs()),
      }));
      return true;
    } catch (error) {
      if (error instanceof StatusError && error.reason === 'NotFound') return false;
      throw error;
    }
  }

  #event(about: SandboxObject, type: string, reason: string, message: string, component: string): SandboxObject {
    const { name, namespace, uid, resourceVersion } = about.metadata;
    const now = timestamp(this.#clock.wallMs());
    const serial = (BigInt(this.#clock.wallMs()) * 1_000_000n + BigInt(this.#serial++ % 1_000_000)).toString(16);
    return copyJson({
      metadata: { name: `${name}.${serial}`, namespace: namespace ?? 'default' },
      involvedObject: { kind: about.kind, namespace, name, uid, apiVersion: about.apiVersion, resourceVersion },
      reason,
      message,
      type,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
    });
  }
}

/** Removes events a while after their last write, as a real server does. */
export class EventExpiry implements Disposable {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** In the order of their writes, which is the order in which they expire. */
  readonly #due: { revision: Revision; atMs: number }[] = [];
  readonly #unsubscribe: () => void;
  #timer: Timer | undefined;

  constructor(options: { store: Store; clock: Clock; ttlMs: number }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
    for (const revision of this.#store.list('events')) this.#add(revision);
    const subscription = this.#store.onCommit('events', ({ type, revision }) => {
      if (type !== 'DELETED') this.#add(revision);
    });
    this.#unsubscribe = () => subscription.close();
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
    this.#timer?.cancel();
    this.#due.length = 0;
  }

  #add(revision: Revision): void {
    this.#due.push({ revision, atMs: this.#clock.monotonicMs() + this.#ttlMs });
    this.#timer ??= this.#arm();
  }

  #arm(): Timer | undefined {
    const first = this.#due[0];
    if (first === undefined) return undefined;
    return this.#clock.after(Math.max(0, first.atMs - this.#clock.monotonicMs()), () => {
      this.#expire();
      this.#timer = this.#arm();
    });
  }

  #expire(): void {
    const nowMs = this.#clock.monotonicMs();
    const end = this.#due.findIndex(({ atMs }) => atMs > nowMs);
    for (const { revision } of this.#due.splice(0, end === -1 ? this.#due.length : end)) {
      const { namespace, name } = revision;
      // A later write made a newer revision, which has its own entry.
      if (this.#store.get('events', namespace, name) === revision) {
        this.#store.remove('events', copyJson(revision.object));
      }
    }
  }
}
