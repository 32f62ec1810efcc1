import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import { inSlices } from '../../base/event-loop.ts';
import type { Logger } from '../../base/logger.ts';
import { warningLogger } from '../../base/text-logger.ts';
import type { CacheTrail, ReflectorSink } from './reflector-cache.ts';
import { type IndexFunction, type Lister, type OnStoreChange, Store } from './store.ts';
import { type KubeObject, markReduced, objectKey, type Resource } from '../kube-object.ts';
import type { ObjectDecoder } from '../protobuf/envelope.ts';
import { Reflector } from './reflector.ts';
import type { ReflectorMetrics } from './reflector-metrics.ts';
import type { Transport } from '../client/transport.ts';

/** A deletion that was missed while disconnected: the last known state, possibly old. */
export class Tombstone<T> {
  readonly key: string;
  readonly object: T;

  constructor(key: string, object: T) {
    this.key = key;
    this.object = object;
  }
}

/** Is notified of changes, one at a time. Must only enqueue keys: no I/O, no waiting. */
export interface InformerHandler<T> {
  onAdd?(object: T, isInInitialList: boolean): void;
  /** `old` and `object` are the same object at a resync; another uid means deleted and recreated. */
  onUpdate?(old: T, object: T): void;
  onDelete?(object: T | Tombstone<T>): void;
}

/** How changes are delivered to a handler. */
export interface HandlerOptions {
  /** Every cached object is delivered again after this many milliseconds, from the cache. 0, the default: never. */
  resyncMs?: number;
}

/** The registration of a handler with an informer. */
export interface HandlerRegistration {
  /** Resolves once the handler was notified of the whole first content; never for one removed before. */
  readonly synced: Promise<void>;
  readonly hasSynced: boolean;
  /** Ends the deliveries. Safe to repeat. */
  remove(): void;
}

/** Which objects are cached, and in what form. */
export interface InformerOptions<T extends KubeObject> {
  transport: Transport;
  resource: Resource;
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  /**
   * The cached form of an object: keep only what is read. Must give the same form for the same object. Default: all of it
   * as it came.
   */
  transform?: (object: KubeObject) => T;
  /**
   * Reads the objects from protobuf, at least what `transform` reads; servers that do not respond in protobuf are read as
   * JSON. The cached form is marked as reduced in either case, since unknown fields are lost. Default: only JSON.
   */
  protobuf?: ObjectDecoder | undefined;
  /**
   * Whether all fields that are read are equal; the update then reaches the cache but no handler. Default: never, each new
   * resource version is delivered.
   */
  sameContent?: (old: T, object: T) => boolean;
  indexers?: Record<string, IndexFunction<T>>;
  /**
   * Called with each change of the content, before the handlers, and also when no handler is notified. Must not throw.
   * Default: nothing.
   */
  onStoreChange?: OnStoreChange<T> | undefined;
  /** Default: the machine's own time. */
  clock?: Clock;
  /** Uniform in [0, 1); default `Math.random`. */
  random?: () => number;
  /** Default: warnings and errors, to standard error. */
  logger?: Logger;
  watchList?: 'auto' | 'on' | 'off';
  metrics?: ReflectorMetrics | undefined;
  /** Makes writes into cached objects throw: for development and tests. Default false. */
  freeze?: boolean;
}

interface Handler<T> {
  handler: InformerHandler<T>;
  resyncMs: number;
  synced: PromiseWithResolvers<void>;
  hasSynced: boolean;
  timer: Timer | undefined;
  /** Changes since a late handler was added, while the content is still delivered to it. */
  backlog: ((to: InformerHandler<T>) => void)[] | undefined;
}

/**
 * A cache of one resource that follows the API server, with handlers that are notified of each change, also of those
 * missed while disconnected. The cache is changed before the handlers are called.
 */
export class Informer<T extends KubeObject> implements Lister<T> {
  readonly resource: Resource;
  readonly #store: Store<T>;
  readonly #reflector: Reflector<T>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #sameContent: (old: T, object: T) => boolean;
  readonly #handlers = new Set<Handler<T>>();
  readonly #trails = new Set<CacheTrail>();
  readonly #synced = Promise.withResolvers<undefined>();
  #hasSynced = false;
  #running = false;
  #ended = false;

  constructor(options: InformerOptions<T>) {
    const { indexers, freeze, sameContent, onStoreChange, random = Math.random, ...reflector } = options;
    const { clock = systemClock, logger = warningLogger, protobuf } = options;
    const { transform: cached = (object: KubeObject) => object as T } = options;
    const transform = protobuf === undefined ? cached : (object: KubeObject) => markReduced(cached(object));
    this.resource = options.resource;
    this.#clock = clock;
    this.#logger = logger;
    this.#sameContent = sameContent ?? (() => false);
    this.#store = new Store<T>({
      logger,
      onChange: onStoreChange,
      ...(indexers && { indexers }),
      ...(freeze !== undefined && { freeze }),
    });
    this.#reflector = new Reflector<T>({ ...reflector, transform, random, clock, logger, sink: this.#sink() });
  }

  /** The first whole content is in the cache. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Resolves once the first whole content is in the cache and the handlers added before were notified of it. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** The last failure, until a request succeeds: for health checks. */
  get lastError(): Error | undefined {
    return this.#reflector.lastError;
  }

  /** Monotonic milliseconds of the last successful response of the API server. */
  get lastSuccessMs(): number {
    return this.#reflector.lastSuccessMs;
  }

  /** Monotonic milliseconds at which something last came from the API server; of the start where nothing has. */
  get lastByteMs(): number {
    return this.#reflector.lastByteMs;
  }

  /** As `Reflector.maxSilenceMs`. */
  get maxSilenceMs(): number | undefined {
    return this.#reflector.maxSilenceMs;
  }

  /** As `Reflector.isFollowing`: while it is false, the API server may have gone back to an older state than that of the cache. */
  get isFollowing(): boolean {
    return this.#reflector.isFollowing;
  }

  /** Resource version up to which the cache is complete. Undefined before the first content. */
  get version(): string | undefined {
    return this.#reflector.lastVersion;
  }

  /** From now on the trail follows the cache, which begins as if it was just listed. @returns what ends that; safe to repeat. */
  addTrail(trail: CacheTrail): () => void {
    this.#trails.add(trail);
    if (this.version !== undefined) trail.listed(this.version, { rewound: false });
    return () => void this.#trails.delete(trail);
  }

  get size(): number {
    return this.#store.size;
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(): Iterable<T> {
    return this.#store.list();
  }

  byIndex(indexName: string, value: string | number): T[] {
    return this.#store.byIndex(indexName, value);
  }

  hasIndex(name: string): boolean {
    return this.#store.hasIndex(name);
  }

  /**
   * Adds a handler at any time; a late one is first notified of everything cached, without gap or repeat. With thousands
   * of objects that goes on after this call, until `synced`.
   */
  addHandler(handler: InformerHandler<T>, options: HandlerOptions = {}): HandlerRegistration {
    const entry: Handler<T> = {
      handler,
      resyncMs: options.resyncMs ?? 0,
      synced: Promise.withResolvers(),
      hasSynced: false,
      timer: undefined,
      backlog: undefined,
    };
    this.#handlers.add(entry);
    if (this.#hasSynced || this.#store.size > 0) void this.#catchUp(entry);
    return {
      synced: entry.synced.promise,
      get hasSynced() {
        return entry.hasSynced;
      },
      remove: () => {
        entry.timer?.cancel();
        this.#handlers.delete(entry);
      },
    };
  }

  /** Follows the API server until the signal aborts; resolves then. To be called once. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#running) throw new Error(`the informer of ${this.resource.plural} is already running`);
    this.#running = true;
    try {
      await this.#reflector.run(signal);
    } finally {
      this.#ended = true;
      for (const entry of this.#handlers) entry.timer?.cancel();
    }
  }

  #sink(): ReflectorSink<T> {
    return {
      get: (key) => this.#store.get(key),
      replace: async (objects, version, options) => {
        for (const trail of this.#trails) trail.listed(version, options);
        await this.#replace(objects);
      },
      upsert: (object) => this.#upsert(object),
      remove: (object) => this.#remove(object),
      changed: (type, object) => {
        for (const trail of this.#trails) trail.changed(type, object);
      },
      missed: () => {
        for (const trail of this.#trails) trail.missed();
      },
      advanced: (version) => {
        for (const trail of this.#trails) trail.advanced(version);
      },
    };
  }

  async #replace(objects: T[]): Promise<void> {
    if (this.#store.size > 0) await this.#removeAllBut(objects);
    await inSlices(objects, (object) => {
      const old = this.#store.set(object);
      if (old === undefined) this.#notify((to) => to.onAdd?.(object, !this.#hasSynced));
      else this.#notify((to) => to.onUpdate?.(old, object)); // also when nothing changed, as in client-go
    });
    if (this.#hasSynced) return;
    this.#hasSynced = true;
    for (const entry of this.#handlers) if (entry.backlog === undefined) this.#markSynced(entry);
    this.#synced.resolve(undefined);
  }

  async #removeAllBut(objects: T[]): Promise<void> {
    const keys = new Set<string>();
    await inSlices(objects, (object) => keys.add(objectKey(object)));
    await inSlices(this.#store.keys(), (key) => {
      if (keys.has(key)) return;
      const object = this.#store.delete(key);
      if (object !== undefined) this.#notify((to) => to.onDelete?.(new Tombstone(key, object)));
    });
  }

  /** Delivers the present content to a late handler, then the changes since. */
  async #catchUp(entry: Handler<T>): Promise<void> {
    entry.backlog = [];
    await inSlices(this.#store.toArray(), (object) => this.#deliver(entry, (to) => to.onAdd?.(object, true)));
    while (entry.backlog.length > 0) {
      const calls = entry.backlog;
      entry.backlog = []; // it may grow again meanwhile
      await inSlices(calls, (call) => this.#deliver(entry, call));
    }
    entry.backlog = undefined;
    if (this.#hasSynced && this.#handlers.has(entry)) this.#markSynced(entry);
  }

  #upsert(object: T): void {
    const old = this.#store.set(object);
    if (old === undefined) this.#notify((to) => to.onAdd?.(object, false));
    else if (old.metadata.uid !== object.metadata.uid || !this.#sameContent(old, object)) {
      this.#notify((to) => to.onUpdate?.(old, object));
    }
  }

  #remove(object: T): void {
    if (this.#store.delete(objectKey(object)) === undefined) return;
    this.#notify((to) => to.onDelete?.(object));
  }

  #notify(call: (handler: InformerHandler<T>) => void): void {
    for (const entry of this.#handlers) {
      if (entry.backlog === undefined) this.#deliver(entry, call);
      else entry.backlog.push(call);
    }
  }

  #deliver(entry: Handler<T>, call: (handler: InformerHandler<T>) => void): void {
    if (!this.#handlers.has(entry)) return; // removed meanwhile
    try {
      call(entry.handler);
    } catch (error) {
      this.#logger.error({ err: error, resource: this.resource.plural }, 'An informer handler failed');
    }
  }

  #markSynced(entry: Handler<T>): void {
    entry.hasSynced = true;
    entry.synced.resolve();
    if (entry.resyncMs > 0) this.#armResync(entry);
  }

  #armResync(entry: Handler<T>): void {
    if (this.#ended) return;
    entry.timer = this.#clock.after(Math.max(entry.resyncMs, 1000), () => void this.#resync(entry));
  }

  /** Objects that change or are deleted meanwhile are delivered in their then current state, or not at all. */
  async #resync(entry: Handler<T>): Promise<void> {
    await inSlices(this.#store.list(), (object) => this.#deliver(entry, (to) => to.onUpdate?.(object, object)));
    if (this.#handlers.has(entry)) this.#armResync(entry);
  }
}
