/** What the parts of a journal share: its options, and whether this process may write it. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { JournalListener } from './intent-journal.ts';
import type { JournalMetrics } from './journal-metrics.ts';
import type { JournalState } from './journal-state.ts';
import { missingRuleOf, refusalGraceMs, type ShardStorage } from './shard-storage.ts';
import type { Heartbeats } from './signs-of-life.ts';

/** Options of `clusterJournal`. */
export interface ClusterJournalOptions {
  /** Its transport is fenced when the lease is lost. */
  client: KubeClient;
  /** Of the lock. */
  namespace: string;
  /** Name of the lock: the shards are `<lock name>-journal-0` and so on. */
  lockName: string;
  /** Whether the records of a provisioner are ours; those of others in the same objects are left alone. */
  isKnownProvisioner: (name: string) => boolean;
  /** Leader election keeps other processes from writing the journal: another writer means that the lease was lost. */
  exclusive: boolean;
  clock: Clock;
  logger: Logger;
  metrics?: Pick<JournalMetrics, 'written' | 'isProtected' | 'reported' | 'size'> | undefined;
  /** How often this process shows that it is alive while it has open records, and reads those of others, in milliseconds. Default 10,000. */
  roundMs?: number;
  /** Records of a process that was silent for so long are taken over, in milliseconds. Default 30,000. */
  adoptAfterMs?: number;
  /** Pause between writes under load, in milliseconds, up to five times as long for few records. Default 40. */
  groupMs?: number;
  /** Identifies this process. Default: random. */
  writer?: string;
  /**
   * Whether a `writer` is an earlier process that cannot run at the same time as this one: its records are taken over at
   * once. Default: no process is known to be.
   */
  isFormer?: ((writer: string) => boolean) | undefined;
}

/** The same with the defaults of what was left out. */
export type JournalOptions = {
  readonly [Name in keyof ClusterJournalOptions]-?: NonNullable<ClusterJournalOptions[Name]>;
};

/** What the writer, the reader and the other parts of a journal share. None of it refers to them. */
export interface JournalParts {
  journal: JournalOptions;
  /** This process: the `writer` of the options. */
  me: string;
  state: JournalState;
  status: WriterStatus;
  storage: ShardStorage;
  heartbeats: Heartbeats;
}

/** How often a journal that cannot be written is tried again, in milliseconds. */
const retryMs = 60_000;

/** Whether this process writes the journal: not before it was read, nor while that is refused, and never again once it has ended. */
export class WriterStatus {
  /** Aborts once nothing can be sent any more: the client is fenced, or `requestSignal` aborted. */
  readonly fencedOrEnded: AbortSignal;
  readonly #options: Pick<JournalParts, 'journal' | 'state'>;
  readonly #requests = new AbortController();
  #isRunning = false;
  #refusal: Error | undefined;
  #retryAtMs = 0;
  #endedBy: Error | undefined;
  #listener: Pick<JournalListener, 'onFenced'> | undefined;

  constructor(options: Pick<JournalParts, 'journal' | 'state'>) {
    this.#options = options;
    this.fencedOrEnded = AbortSignal.any([options.journal.client.fenced, this.#requests.signal]);
  }

  /** The signal for every request: aborts once the run has ended or the start was abandoned. */
  get requestSignal(): AbortSignal {
    return this.#requests.signal;
  }

  /** Whether writes are started. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Nothing can be written, which is reported: work goes on without protection. */
  get isRefused(): boolean {
    return this.#refusal !== undefined;
  }

  get isRetryDue(): boolean {
    return this.isRefused && this.#options.journal.clock.monotonicMs() >= this.#retryAtMs;
  }

  get hasEnded(): boolean {
    return this.#endedBy !== undefined;
  }

  /** @throws when nothing may be written any more. */
  throwIfEnded(): void {
    if (this.#endedBy !== undefined) throw this.#endedBy;
  }

  /** Sets who is called when another process writes. */
  listen(listener: Pick<JournalListener, 'onFenced'>): void {
    this.#listener = listener;
  }

  /** From now on writes are started. */
  start(): void {
    this.#isRunning = true;
  }

  /** It can be written, as a write has shown: logged and counted when that changes. */
  restore(): void {
    const { logger, metrics } = this.#options.journal;
    metrics.isProtected(true);
    if (this.#refusal === undefined) return;
    this.#refusal = undefined;
    logger.info({}, 'The intent journal can be written again');
  }

  /** It cannot be written now. Whoever waits goes on without protection. */
  refuse(error: Error): void {
    this.#isRunning = false;
    const { state, journal } = this.#options;
    const { clock, logger, metrics, namespace, lockName } = journal;
    const isNew = this.#refusal === undefined;
    const addRule = missingRuleOf(error);
    // a server that has just started may know some of its roles only
    this.#retryAtMs = clock.monotonicMs() + (isNew && addRule !== undefined ? refusalGraceMs : retryMs);
    this.#refusal = error;
    for (const waiter of state.takeWaiters()) waiter.resolve('unprotected');
    if (!isNew) return;
    metrics.isProtected(false);
    logger.error(
      { namespace, journal: `${lockName}-journal-0`, err: error, ...(addRule !== undefined && { addRule }) },
      'The intent journal cannot be written: a crash may leak volumes until this is fixed; no restart is needed',
    );
  }

  /** Another process writes although this one holds the lease. @returns what to throw. */
  fence(writer: string): Error {
    const error = new Error(
      `the intent journal was written by another process (${writer}) while this one held the lease`,
    );
    this.end(error);
    this.#listener?.onFenced(error);
    return error;
  }

  /** Nothing is written any more. */
  end(error: Error): void {
    this.#endedBy ??= error;
    this.#isRunning = false;
    for (const waiter of this.#options.state.takeWaiters()) waiter.reject(error); // also those of writes that end later
  }

  /** Until disposed: once the signal aborts, nothing is sent any more, for good. */
  endsWith(signal: AbortSignal): Disposable {
    const end = (): void => this.#requests.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    return { [Symbol.dispose]: () => signal.removeEventListener('abort', end) };
  }
}

/** Waits for a promise that others resolve; an abort rejects it for everybody. */
export async function settled<T>({ promise, reject }: PromiseWithResolvers<T>, signal: AbortSignal): Promise<T> {
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
