/**
 * Leader election on a Lease (Kubernetes page "Leases", "Leader election"). A standby watches the Lease: it takes over
 * as soon as the leader releases it, or a second after it expires.
 */
import { joinSignals, untilAborted } from '../../base/abort.ts';
import { systemClock } from '../../base/clock.ts';
import { momentOf, passedMs, type Permit } from '../../base/permit.ts';
import { warningLogger } from '../../base/text-logger.ts';
import { hedgedTries } from '../client/hedged-tries.ts';
import { Informer } from '../cache/informer.ts';
import { KubeClient, maxFieldManagerLength } from '../client/kube-client.ts';
import { checkElectionTimings, jitterFactor, type LeaderElectorOptions } from './leader-elector-options.ts';
import { HolderSocket } from './holder-socket.ts';
import { LeaseLock } from './lease-lock.ts';
import { type Lease, lockKinds } from './lease-record.ts';

/** How an election ended: never led, led until the work was done, or lost the lease while it led. */
export type ElectionOutcome = 'stopped' | 'done' | 'lost';

/** The lease is lost: work aborted with this reason must not write anything outside the process any more. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/** Min pause between two tries to renew or release the Lease, in milliseconds. */
const minTryPauseMs = 250;

/** The options that have no default. */
type Optional = 'guarded' | 'recorder' | 'metrics' | 'onRequest' | 'fieldManager' | 'place' | 'onNamesake';

/** Waits for a Lease, and holds it while the work of a leader goes on. One object runs one election. */
export class LeaderElector {
  readonly #options: Required<Omit<LeaderElectorOptions, Optional>> & Pick<LeaderElectorOptions, Optional>;
  readonly #socket: HolderSocket;
  readonly #lock: LeaseLock;
  #leading = false;
  #released = false;
  #lastHolder: string | undefined;
  /** Aborted by the watch when the Lease changed. */
  #changed = new AbortController();
  /** Aborted to have the lease renewed now. */
  #hurried = new AbortController();
  /** Monotonic milliseconds after which no write of the Lease is sent: another may hold it by then. */
  #writesEndAtMs = Infinity;
  /** Whether the renewal or attempt that is under way needed more than one request. */
  #slowPath = false;
  /** Settled at the next renewal, or at the end. */
  #nextRenewal = nextRenewal();
  /**
   * Valid while we lead and the last renewal was sent no longer ago than the renew deadline, by the clock on which more has passed: others may
   * take the lease over some seconds later.
   */
  readonly permit: Permit;

  /** @throws {RangeError} when the timings cannot work, or without an identity. */
  constructor(options: LeaderElectorOptions) {
    this.#options = {
      lock: 'lease',
      labels: {},
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2000,
      releaseOnExit: true,
      random: Math.random,
      clock: systemClock,
      logger: warningLogger,
      ...options,
    };
    checkElectionTimings(this.#options);
    if (options.identity === '') throw new RangeError('the identity of a leader election must not be empty');
    const { transport, lock, namespace, name, identity, labels, leaseDurationMs, clock, logger } = this.#options;
    const fieldManager = options.fieldManager ?? name.slice(0, maxFieldManagerLength);
    this.#socket = new HolderSocket(options);
    this.#lock = new LeaseLock({
      client: new KubeClient({ transport, fieldManager, permit: this.#writePermit() }),
      kind: lockKinds[lock],
      namespace,
      name,
      identity,
      socket: this.#socket,
      labels,
      leaseDurationMs,
      clock,
      logger,
      onSlowPath: () => this.#noteSlowPath(),
      onRequest: (error) => this.#options.onRequest?.(error),
    });
    this.#options.metrics?.leading(false);
    const isValid = (): boolean => this.#isCertain();
    this.permit = {
      get isValid() {
        return isValid();
      },
      renewed: (signal) => this.#renewed(signal),
    };
  }

  /** Checked directly before a write of the Lease is sent, since connecting may take long or the process may be paused. */
  #writePermit(): Permit {
    const isValid = (): boolean => this.#options.clock.monotonicMs() < this.#writesEndAtMs;
    return {
      get isValid() {
        return isValid();
      },
      renewed: () => Promise.reject(new LeaseLostError('the time to write the lease is over')),
    };
  }

  #noteSlowPath(): void {
    if (!this.#slowPath) this.#options.metrics?.slowPath();
    this.#slowPath = true;
  }

  #isCertain(): boolean {
    const { clock, renewDeadlineMs } = this.#options;
    const { renewedAt } = this.#lock;
    return this.#leading && renewedAt !== undefined && passedMs(renewedAt, momentOf(clock)) <= renewDeadlineMs;
  }

  /** Renews the lease at once, unless that is under way. */
  async #renewed(signal: AbortSignal | undefined): Promise<void> {
    const { promise } = this.#nextRenewal;
    this.#hurried.abort();
    await (signal === undefined ? promise : untilAborted(promise, signal));
  }

  get isLeader(): boolean {
    return this.#leading;
  }

  /** Whether the lease was released at the end, so that another leads at once. */
  get released(): boolean {
    return this.#released;
  }

  /** Why a health check should fail; undefined while there is no reason. */
  get unhealthyReason(): string | undefined {
    const { clock, leaseDurationMs, name } = this.#options;
    if (!this.#leading || clock.monotonicMs() - this.#lock.observedAtMs <= leaseDurationMs + 20_000) return undefined;
    return `failed election to renew leadership on lease ${name}`;
  }

  /** Why this instance is not permitted to lead, for readiness; undefined while it is. */
  get forbidden(): string | undefined {
    const refusal = this.#lock.forbidden;
    return refusal && `not permitted to hold the lease ${this.#text}: ${refusal.message}`;
  }

  /**
   * Waits for the lease, then leads: `work` runs until it ends by itself, usually because `stop` aborted, and the lease
   * is kept until then. `lost` aborts with a `LeaseLostError` once it is no longer certain that we hold the lease; work
   * must then end without writing anything outside the process.
   */
  async run(options: { stop: AbortSignal; work: (lost: AbortSignal) => Promise<void> }): Promise<ElectionOutcome> {
    using _socket = this.#socket; // until nothing is written any more
    const watching = new AbortController();
    const informer = this.#watchLease();
    const watch = informer.run(watching.signal);
    try {
      if (!(await this.#acquire(options.stop))) return 'stopped';
    } finally {
      watching.abort(new Error('the lease is held'));
      await watch;
    }
    return await this.#lead(options.work);
  }

  /**
   * Watches the lease before `run`, so that the time for which its holder has been silent is known by then. Ends when the
   * signal aborts.
   */
  observe(signal: AbortSignal): Promise<void> {
    return this.#watchLease().run(signal);
  }

  async #acquire(stop: AbortSignal): Promise<boolean> {
    const { logger, retryPeriodMs, renewDeadlineMs, random } = this.#options;
    const namesake = { sinceMs: NaN, reported: 0 };
    logger.info({ lock: this.#text }, 'Attempting to acquire leader lease...');
    while (!stop.aborted) {
      this.#slowPath = false;
      const requestTimeoutMs = Math.max(1000, renewDeadlineMs / 2);
      const acquired = await this.#lock.tryAcquireOrRenew({ signal: stop, requestTimeoutMs });
      this.#noteHolder();
      if (acquired) {
        logger.info({ lock: this.#text }, 'Successfully acquired lease');
        return true;
      }
      this.#noteNamesake(namesake);
      await this.#untilNextAttempt(retryPeriodMs * (1 + jitterFactor * random()), stop);
    }
    return false;
  }

  /** Reports another holder with our identity: first that it may still run, and once it renews the lease, that it does. */
  #noteNamesake(noted: { sinceMs: number; reported: number }): void {
    const { identity, logger, onNamesake } = this.#options;
    if (!this.#lock.isOfNamesake) return;
    if (noted.reported === 0) noted.sinceMs = this.#lock.observedAtMs;
    const isAlive = this.#lock.observedAtMs > noted.sinceMs;
    if (noted.reported > Number(isAlive)) return;
    noted.reported = 1 + Number(isAlive);
    const fields = { lock: this.#text, identity };
    if (isAlive) logger.warn(fields, 'Another process holds the lease with the same identity, waiting as a standby');
    else
      logger.info(fields, 'Another process has renewed the lease with the same identity, waiting until it has ended');
    onNamesake?.({ isAlive });
  }

  /** Waits for the pause, the expiry of the observed record, or a Lease that nobody holds: whichever comes first. */
  async #untilNextAttempt(pauseMs: number, stop: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const endMs = clock.monotonicMs() + pauseMs;
    for (;;) {
      const nowMs = clock.monotonicMs();
      const heldByOther = this.#lock.holder !== '' && !this.#lock.isOurs;
      const untilMs = heldByOther && this.#lock.expiresAtMs > nowMs ? Math.min(endMs, this.#lock.expiresAtMs) : endMs;
      if (untilMs <= nowMs || stop.aborted) return;
      using woken = joinSignals([stop, this.#changed.signal], { clock });
      const slept = await sleptToTheEnd(clock.sleep(untilMs - nowMs, { signal: woken.signal }));
      if (slept || this.#lock.holder === '') return;
    }
  }

  async #lead(work: (lost: AbortSignal) => Promise<void>): Promise<ElectionOutcome> {
    const { metrics, recorder, identity, logger, releaseOnExit } = this.#options;
    this.#leading = true;
    metrics?.leading(true);
    recorder?.event(this.#lock.reference, 'Normal', 'LeaderElection', `${identity} became leader`);
    const lost = new AbortController();
    const ended = new AbortController();
    lost.signal.addEventListener('abort', () => this.#nextRenewal.reject(lost.signal.reason));
    const renewing = this.#keepRenewing(lost, ended.signal);
    try {
      await work(lost.signal);
    } finally {
      ended.abort(new Error('the work has ended'));
      await renewing;
      this.#leading = false;
      this.#nextRenewal.reject(new LeaseLostError('the work of the leader has ended'));
      metrics?.leading(false);
      recorder?.event(this.#lock.reference, 'Normal', 'LeaderElection', `${identity} stopped leading`);
      if (releaseOnExit && !lost.signal.aborted) this.#released = await this.#release(); // also after work that failed
    }
    if (lost.signal.aborted) return 'lost';
    logger.info({ lock: this.#text }, 'Stopped leading');
    return 'done';
  }

  /** One success per retry period, the first at once. Ends when the work does or the lease is lost. */
  async #keepRenewing(lost: AbortController, ended: AbortSignal): Promise<void> {
    const { clock, logger, guarded } = this.#options;
    for (;;) {
      const failure = await this.#renewOnce(ended);
      if (failure !== undefined) {
        logger.info({ lock: this.#text, err: failure }, 'Failed to renew lease');
        guarded?.fence(failure);
        lost.abort(failure);
        return;
      }
      this.#nextRenewal.resolve(undefined);
      this.#nextRenewal = nextRenewal();
      this.#hurried = new AbortController();
      using woken = joinSignals([ended, this.#hurried.signal], { clock });
      await sleptToTheEnd(clock.sleep(this.#renewalPauseMs(), { signal: woken.signal }));
      if (ended.aborted) return;
    }
  }

  /** Milliseconds until the next renewal: less than the retry period where the response to the last one came late. */
  #renewalPauseMs(): number {
    const { clock, retryPeriodMs, renewDeadlineMs } = this.#options;
    const { renewedAt, expiresAtMs } = this.#lock;
    const dueAtMs = (renewedAt?.monotonicMs ?? -Infinity) + Math.max(retryPeriodMs, renewDeadlineMs / 2);
    return Math.max(Math.min(retryPeriodMs, Math.min(dueAtMs, expiresAtMs) - clock.monotonicMs()), 0);
  }

  /**
   * Tries until it succeeds, or until the renew deadline or the lease itself has passed, which is returned. The deadline is a
   * budget: further tries, over new connections, begin while those before have had no response.
   */
  async #renewOnce(ended: AbortSignal): Promise<LeaseLostError | undefined> {
    const { clock, renewDeadlineMs } = this.#options;
    const { expiresAtMs } = this.#lock;
    // a process that was paused must not renew what others may already hold
    if (clock.monotonicMs() >= expiresAtMs) return new LeaseLostError('the lease expired before it was renewed');
    const untilMs = Math.min(clock.monotonicMs() + renewDeadlineMs, expiresAtMs);
    const renewed = new Set<boolean>();
    await this.#tries(untilMs, [ended], async (how) => {
      const isRenewed = await this.#lock.tryAcquireOrRenew({ ...how, keepOnly: true });
      renewed.add(isRenewed);
      return isRenewed || !this.#lock.isOurs || clock.monotonicMs() >= untilMs;
    });
    if (renewed.has(true) || ended.aborted) return undefined;
    if (this.#lock.isOurs) return new LeaseLostError(`the lease could not be renewed within ${renewDeadlineMs} ms`);
    const { holder, isOfNamesake } = this.#lock;
    if (isOfNamesake) return new LeaseLostError(`another process holds the lease with the same identity, ${holder}`);
    return new LeaseLostError(`${holder === '' ? 'nobody' : holder} holds the lease`); // nobody: another may have led meanwhile and released it
  }

  async #release(): Promise<boolean> {
    const { clock, logger, renewDeadlineMs } = this.#options;
    const untilMs = Math.min(clock.monotonicMs() + renewDeadlineMs, this.#lock.expiresAtMs);
    const { fenced } = this.#options.transport;
    const isReleased = await this.#tries(untilMs, [fenced], (how) => this.#lock.release(how));
    if (!isReleased) logger.error({ lock: this.#text }, 'The lease could not be released, it will expire');
    return isReleased;
  }

  /** Tries until a moment in monotonic milliseconds, after which no write is sent. @returns whether one settled the matter. */
  async #tries(
    untilMs: number,
    signals: readonly AbortSignal[],
    attempt: (how: { signal: AbortSignal; newConnection: boolean }) => Promise<boolean>,
  ): Promise<boolean> {
    const { clock, renewDeadlineMs } = this.#options;
    this.#writesEndAtMs = untilMs;
    this.#slowPath = false;
    using budget = joinSignals(signals, { clock, timeoutMs: Math.max(untilMs - clock.monotonicMs(), 0) });
    return await hedgedTries({
      start: (number, signal) => {
        if (number > 0) this.#noteSlowPath();
        return attempt({ signal, newConnection: number > 0 });
      },
      pauseMs: () => tryPauseMs(renewDeadlineMs, untilMs - clock.monotonicMs()),
      clock,
      signal: budget.signal,
    });
  }

  #watchLease(): Informer<Lease> {
    const { transport, lock, namespace, name, clock, logger, random } = this.#options;
    const { resource, toLease } = lockKinds[lock];
    const informer = new Informer<Lease>({
      transport,
      resource,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      transform: toLease,
      clock,
      logger,
      random,
    });
    const observe = (lease: Lease): void => {
      if (!this.#lock.observe(lease)) return;
      this.#noteHolder();
      this.#wake();
    };
    informer.addHandler({
      onAdd: observe,
      onUpdate: (_old, lease) => observe(lease),
      onDelete: () => {
        this.#lock.forget();
        this.#wake();
      },
    });
    return informer;
  }

  #wake(): void {
    this.#changed.abort();
    this.#changed = new AbortController();
  }

  #noteHolder(): void {
    if (this.#lock.holder === this.#lastHolder) return;
    this.#lastHolder = this.#lock.holder;
    this.#options.logger.debug({ lock: this.#text, leader: this.#lastHolder }, 'New leader detected');
  }

  get #text(): string {
    return `${this.#options.namespace}/${this.#options.name}`;
  }
}

/** Pauses between tries, in milliseconds: an eighth of the budget, shorter towards its end. */
function tryPauseMs(budgetMs: number, leftMs: number): number {
  return Math.min(budgetMs / 8, Math.max(leftMs / 2, minTryPauseMs));
}

function nextRenewal(): PromiseWithResolvers<undefined> {
  const next = Promise.withResolvers<undefined>();
  next.promise.catch(() => undefined); // usually nobody waits for it
  return next;
}

async function sleptToTheEnd(sleep: Promise<void>): Promise<boolean> {
  try {
    await sleep;
    return true;
  } catch {
    return false;
  }
}
