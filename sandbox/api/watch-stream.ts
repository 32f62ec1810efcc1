import type { Clock, Timer } from '../../src/base/clock.ts';
import type { Subscription } from './client.ts';
import type { FaultAction } from './faults.ts';
import type { Change, Store } from './store.ts';
import { type Scope, scopeFilter } from './list-read.ts';
import type { Renderer } from './presentation.ts';
import type { ReadOptions } from './read-options.ts';
import type { Reply } from './reply.ts';
import type { Revision } from './revision.ts';
import { StatusError } from './status-error.ts';

/** How a server treats all its watches. */
export interface WatchSettings {
  readonly bookmarkIntervalMs: number;
  /** Responds with HTTP 410 instead of an ERROR event to an RV that left the history. */
  readonly goneAsHttpStatus: boolean;
}

/** What one watch is made of. */
export interface WatchStreamOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly scope: Scope;
  readonly options: ReadOptions;
  readonly renderer: Renderer;
  readonly reply: Reply;
  readonly settings: WatchSettings;
  readonly fault: FaultAction | undefined;
  /** In [0,1), for the time-out of a watch that names none. */
  readonly random: () => number;
}

const batchBytes = 64 * 1024;
const defaultTimeoutSeconds = 1800;
const lastBookmarkBeforeEndMs = 2000;
/** Changes that may wait for a client that does not read; one more aborts the connection. */
const backlogEvents = 1000;
/** How much may lie in the socket's buffer of such a client. */
const backlogBytes = 64 * 1024 * 1024;

/**
 * One open watch: first the objects of its initial state, if it asked for them, then every change
 * from the store in the order of RVs. It reads no faster than its client: what waits, waits as references.
 */
export class WatchStream {
  readonly #options: WatchStreamOptions;
  readonly #matches: (revision: Revision) => boolean;
  readonly #timers = new Set<Timer>();
  #subscription: Subscription | undefined;
  #initial: readonly Revision[] = [];
  #initialSent = 0;
  /** RV of the initial state whose end is to be marked, while that is to be done. */
  #markInitialEnd: number | undefined;
  #queue: Change[] = [];
  #scheduled = false;
  #blocked = false;
  #ended = false;
  #eventsSent = 0;
  /** Changes an injected delay holds back. */
  #delayed = 0;

  /** @throws {StatusError} for unreadable selectors. */
  constructor(options: WatchStreamOptions) {
    this.#options = options;
    this.#matches = scopeFilter(options.scope, options.options);
  }

  /** Sends the response headers at once and the events as they come. @throws {StatusError} `Expired`, if so set. */
  start(): void {
    const { store, scope, options, reply, settings, fault } = this.#options;
    const { storage } = scope.type;
    const from = options.resourceVersion ?? 0;
    let missed: Change[] = [];
    let gone: StatusError | undefined;
    if (from === 0 || options.sendInitialEvents === true) {
      this.#initial = store.list(storage, scope.namespace).filter(this.#matches);
      if (options.sendInitialEvents === true) this.#markInitialEnd = store.rv;
    } else {
      const changes = store.changesSince(storage, from);
      if (changes === undefined) {
        gone = new StatusError('Expired', `too old resource version: ${from} (${store.compactedRv})`);
        if (settings.goneAsHttpStatus) throw gone;
      } else missed = changes;
    }
    const { response } = reply;
    response.setHeader('Content-Type', 'application/json');
    response.setHeader('Transfer-Encoding', 'chunked');
    response.writeHead(200);
    response.flushHeaders();
    response.on('close', () => this.#stop());
    response.on('drain', () => {
      this.#blocked = false;
      this.#pump();
    });
    if (gone !== undefined) {
      this.#endWithError(gone);
      return;
    }
    if (fault?.type === 'watchError') {
      this.#endWithError(new StatusError(fault.reason, `injected: ${fault.reason}`, { code: fault.code }));
      return;
    }
    this.#armTimers();
    if (fault?.type === 'watchStall') return;
    this.#queue = missed;
    this.#subscription = store.onCommit(storage, (change) => {
      if (change.rv <= from) return;
      if (fault?.type === 'watchDelay') this.#enqueueLater(change, fault.ms);
      else this.#enqueue(change);
    });
    if (fault?.type === 'watchDelay') this.#after(fault.ms, () => this.#pump());
    else this.#pump();
  }

  /** Ends the stream as a server that shuts down does: with a clean end of the body. */
  end(): void {
    if (this.#ended) return;
    this.#stop();
    this.#options.reply.response.end();
  }

  #enqueueLater(change: Change, ms: number): void {
    this.#delayed++;
    this.#after(ms, () => {
      this.#delayed--;
      this.#enqueue(change);
    });
  }

  #enqueue(change: Change): void {
    if (this.#ended) return;
    this.#queue.push(change);
    const { reply } = this.#options;
    if (this.#blocked && this.#initialSent >= this.#initial.length) {
      const { writableLength } = reply.response;
      if (this.#queue.length > backlogEvents || writableLength > backlogBytes) {
        this.#abort();
        return;
      }
    }
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  /** Sends what there is until the client has to catch up. */
  #pump(): void {
    let batch = '';
    while (!this.#blocked && !this.#ended) {
      const text = this.#next();
      if (text !== undefined) batch += text;
      if (batch !== '' && (text === undefined || batch.length >= batchBytes || this.#isCutDue())) {
        this.#blocked = !this.#options.reply.response.write(batch);
        batch = '';
      }
      if (this.#isCutDue()) {
        this.#injectedCut();
        return;
      }
      if (text === undefined) return;
    }
  }

  /** The text of the next event, or `undefined` if there is none now. */
  #next(): string | undefined {
    const { renderer, fault } = this.#options;
    const initial = this.#initial[this.#initialSent];
    if (initial !== undefined) {
      this.#initialSent++;
      if (this.#initialSent === this.#initial.length) {
        this.#initial = [];
        this.#initialSent = 0;
      }
      return this.#event('ADDED', renderer.object(initial));
    }
    if (this.#markInitialEnd !== undefined) {
      const rv = this.#markInitialEnd;
      this.#markInitialEnd = undefined;
      return this.#event('BOOKMARK', renderer.bookmark(rv, { 'k8s.io/initial-events-end': 'true' }));
    }
    for (let change = this.#queue.shift(); change !== undefined; change = this.#queue.shift()) {
      const type = this.#typeFor(change);
      if (type === undefined) continue;
      const text = this.#event(type, renderer.object(change.revision));
      return fault?.type === 'watchDuplicate' ? text + text : text;
    }
    return undefined;
  }

  /** What the change is to a watcher with selectors. */
  #typeFor({ type, revision, previous }: Change): Change['type'] | undefined {
    const before = previous !== undefined && this.#matches(previous);
    if (type === 'DELETED') return before ? 'DELETED' : undefined;
    const after = this.#matches(revision);
    if (after) return before ? 'MODIFIED' : 'ADDED';
    return before ? 'DELETED' : undefined;
  }

  #event(type: string, object: string): string {
    this.#eventsSent++;
    return `{"type":"${type}","object":${object}}\n`;
  }

  #armTimers(): void {
    const { options, settings, random, fault, clock } = this.#options;
    const seconds = options.timeoutSeconds ?? defaultTimeoutSeconds * (1 + random());
    const timeoutMs = seconds * 1000;
    this.#after(timeoutMs, () => this.end());
    if (fault?.type === 'watchCut' && fault.afterMs !== undefined)
      this.#after(fault.afterMs, () => this.#injectedCut());
    if (!options.bookmarks || fault?.type === 'noBookmarks' || fault?.type === 'watchStall') return;
    const endsAtMs = clock.monotonicMs() + timeoutMs;
    const repeat = (): void => {
      this.#bookmark();
      const leftMs = endsAtMs - clock.monotonicMs();
      if (leftMs > settings.bookmarkIntervalMs) this.#after(settings.bookmarkIntervalMs, repeat);
    };
    this.#after(settings.bookmarkIntervalMs, repeat);
    if (timeoutMs > lastBookmarkBeforeEndMs) this.#after(timeoutMs - lastBookmarkBeforeEndMs, () => this.#bookmark());
  }

  /** Tells the RV the client is at; only when nothing waits, so that no event with a smaller one follows. */
  #bookmark(): void {
    const { renderer, reply, store } = this.#options;
    const idle = this.#queue.length === 0 && this.#initial.length === 0 && this.#delayed === 0;
    if (this.#ended || this.#blocked || !idle || this.#markInitialEnd !== undefined) return;
    this.#blocked = !reply.response.write(this.#event('BOOKMARK', renderer.bookmark(store.rv)));
  }

  #isCutDue(): boolean {
    const { fault } = this.#options;
    return fault?.type === 'watchCut' && fault.afterEvents !== undefined && this.#eventsSent >= fault.afterEvents;
  }

  #injectedCut(): void {
    const { fault } = this.#options;
    if (fault?.type === 'watchCut' && fault.how === 'reset') this.#abort();
    else this.end();
  }

  #endWithError(error: StatusError): void {
    this.#options.reply.response.write(`{"type":"ERROR","object":${JSON.stringify(error.toStatus())}}\n`);
    this.end();
  }

  #abort(): void {
    if (this.#ended) return;
    this.#stop();
    this.#options.reply.abort();
  }

  #after(ms: number, run: () => void): void {
    const timer = this.#options.clock.after(ms, () => {
      this.#timers.delete(timer);
      if (!this.#ended) run();
    });
    this.#timers.add(timer);
  }

  #stop(): void {
    this.#ended = true;
    this.#subscription?.close();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#queue = [];
    this.#initial = [];
  }
}
