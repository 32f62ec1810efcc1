/** How the nodes agree, without knowing each other, on one that provisions a claim which any of them may take. */
import type { Clock, Timer } from '../../base/clock.ts';
import { goQuote } from '../../base/go-quote.ts';
import type { Logger } from '../../base/logger.ts';
import { TaskGroup } from '../../base/task-group.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { ConflictError, NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { ExponentialLimiter, type RateLimiter } from '../../kube/queue/rate-limiter.ts';
import { WorkQueue } from '../../kube/queue/work-queue.ts';
import { uidIndex } from '../../provision/cache/informers.ts';
import { claimUid, namesVolume } from '../../provision/claim-fields.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, selectedNodeKey } from '../../provision/objects.ts';
import type { RunOptions } from '../../provision/run-workers.ts';
import { errorMessage } from '../call-error.ts';

interface OwnershipContestOptions {
  nodeName: string;
  /** With the index by UID. */
  claims: Lister<PersistentVolumeClaim>;
  client: KubeClient;
  /** How long a node waits before it tries to take a claim; counted by claim UID. */
  limiter: RateLimiter;
  /** Claims taken at the same time; any number may wait. */
  workers: number;
  /** Whether the driver can be reached now: while it cannot, claims are left to other nodes. */
  isReady: () => boolean;
  /** Whether there is room for the claim here. What it throws is ignored: provisioning records it. */
  hasRoom: (claim: PersistentVolumeClaim, signal: AbortSignal) => Promise<boolean>;
  /** A claim could not be taken: `failure` has the reason, and the claim needs a sync. */
  onFailed: (uid: string) => void;
  clock: Clock;
  logger: Logger;
}

/** One claim that this node would take. */
interface Entry {
  timer?: Timer;
  failure?: Error;
}

/**
 * Waits a random time for each claim and then writes the node's name on it, unless another node was first. The wait
 * occupies no worker, and only that name is written. The watch then delivers the claim to the node that won.
 */
export class OwnershipContest {
  readonly #options: OwnershipContestOptions;
  readonly #entries = new Map<string, Entry>();
  /** Claims whose wait is over. */
  readonly #due: WorkQueue;

  constructor(options: OwnershipContestOptions) {
    this.#options = options;
    this.#due = new WorkQueue({ limiter: options.limiter, clock: options.clock });
  }

  /** Claims that this node waits for or is taking. */
  get size(): number {
    return this.#entries.size;
  }

  /** This node would take the claim. Does nothing for one that it already waits for. */
  enter(claim: PersistentVolumeClaim): void {
    const uid = claimUid(claim);
    if (this.#entries.has(uid) || this.#due.shuttingDown) return;
    const entry: Entry = {};
    this.#entries.set(uid, entry);
    this.#wait(uid, entry);
  }

  /** The claim has an owner, or is gone: the next wait starts from the beginning. Safe to repeat. */
  leave(uid: string): void {
    this.#drop(uid);
    this.#due.forget(uid);
  }

  /** Why the claim could not be taken; undefined while that may still happen. */
  failure(uid: string): Error | undefined {
    return this.#entries.get(uid)?.failure;
  }

  /** The failure was recorded; the claim may be entered again and then waits longer than before. */
  clearFailure(uid: string): void {
    if (this.failure(uid) !== undefined) this.#drop(uid);
  }

  /** Works until it is stopped, then finishes what is under way and resolves. Claims that wait are left to others. */
  async run({ stop, abort = new AbortController().signal }: RunOptions): Promise<void> {
    const end = (): void => {
      this.#due.shutDown();
      for (const { timer } of this.#entries.values()) timer?.cancel();
    };
    const workers = new TaskGroup(stop, abort);
    workers.signal.addEventListener('abort', end, { once: true });
    if (workers.signal.aborted) end();
    for (let number = 0; number < this.#options.workers; number++) workers.start((ending) => this.#work(ending, abort));
    await workers.ended();
    this.#entries.clear();
  }

  async #work(ending: AbortSignal, abort: AbortSignal): Promise<void> {
    for (let uid = await this.#due.get(); uid !== undefined; uid = await this.#due.get()) {
      const entry = this.#entries.get(uid);
      try {
        if (entry !== undefined && !ending.aborted) await this.#reach(uid, entry, { ending, abort });
      } catch (error) {
        if (entry !== undefined && !ending.aborted) this.#fail(uid, entry, error);
      } finally {
        this.#due.done(uid);
      }
    }
  }

  #wait(uid: string, entry: Entry): void {
    if (this.#due.shuttingDown) return;
    const { limiter, claims, clock, logger } = this.#options;
    const delayMs = limiter.when(uid);
    const [claim] = claims.byIndex(uidIndex, uid);
    const fields = { ...(claim && { claim: objectKey(claim) }), uid, delayMs, attempt: limiter.failures(uid) };
    logger.trace(fields, 'Will try to become owner of the claim');
    entry.timer = clock.after(delayMs, () => this.#due.add(uid));
  }

  /**
   * @param ending - aborts reads and GetCapacity. @param abort - aborts the update of the claim, too.
   * @throws {Error} when the claim could not be read or written.
   */
  async #reach(
    uid: string,
    entry: Entry,
    { ending, abort }: { ending: AbortSignal; abort: AbortSignal },
  ): Promise<void> {
    const { nodeName, client, claims, logger } = this.#options;
    const [cached] = claims.byIndex(uidIndex, uid);
    if (!this.#isOwnerless(uid, entry, cached) || !(await this.#roomFor(uid, cached, ending))) return;
    // The cache may be stale, and what it has is not whole.
    const claim = await this.#read(cached, ending);
    if (!this.#isOwnerless(uid, entry, claim)) return;
    if (this.#entries.get(uid) !== entry) return; // it was taken meanwhile
    if (this.#due.shuttingDown) return; // a node that may never come back must not name itself
    if (!this.#options.isReady()) {
      logger.debug({ claim: objectKey(claim) }, 'The driver is disconnected, the claim is left to other nodes for now');
      this.#options.limiter.forget(uid); // an outage does not lengthen the wait after it
      this.#wait(uid, entry);
      return;
    }
    const { annotations } = claim.metadata;
    const update = {
      ...claim,
      metadata: { ...claim.metadata, annotations: { ...annotations, [selectedNodeKey]: nodeName } },
    };
    const fields = { claim: objectKey(claim), node: nodeName };
    try {
      await client.update(persistentVolumeClaims, update, { signal: abort });
      logger.debug(fields, 'Became owner of the claim');
      this.leave(uid);
    } catch (error) {
      if (error instanceof NotFoundError) this.leave(uid);
      else if (error instanceof ConflictError) {
        logger.debug(fields, 'The claim was changed by another client first');
        if (this.#entries.get(uid) === entry) this.#wait(uid, entry);
      } else {
        throw new Error(`PVC ${objectKey(claim)}: ${this.#selecting(error)}`, { cause: error });
      }
    }
  }

  /** The claim as it is now; undefined when it is gone. */
  async #read(cached: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolumeClaim | undefined> {
    try {
      return await this.#options.client.get<PersistentVolumeClaim>(persistentVolumeClaims, cached.metadata, { signal });
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw new Error(`PVC ${objectKey(cached)}: ${this.#selecting(error)}`, { cause: error });
    }
  }

  /** Whether the claim still has no owner; where it has one, or is gone, the contest is over. */
  #isOwnerless(uid: string, entry: Entry, claim: PersistentVolumeClaim | undefined): claim is PersistentVolumeClaim {
    const owner = claim?.metadata.annotations?.[selectedNodeKey] ?? '';
    if (claim?.metadata.uid === uid && owner === '' && !namesVolume(claim)) return true;
    const fields = { ...(claim && { claim: objectKey(claim) }), uid, owner };
    this.#options.logger.debug(fields, 'Did not become owner of the claim');
    if (this.#entries.get(uid) === entry) this.leave(uid);
    return false;
  }

  /** Whether the driver has room; a node that has none leaves the contest until the claim changes. */
  async #roomFor(uid: string, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> {
    const { hasRoom, logger } = this.#options;
    const fields = { claim: objectKey(claim) };
    try {
      if (await hasRoom(claim, signal)) return true;
    } catch (error) {
      signal.throwIfAborted();
      logger.debug(
        { ...fields, err: error },
        'The capacity for the claim could not be checked, continuing without the check',
      );
      return true;
    }
    logger.debug(fields, 'Not enough capacity for the claim');
    this.#drop(uid);
    return false;
  }

  #selecting(error: unknown): string {
    return `selecting node ${goQuote(this.#options.nodeName)} for PVC failed: ${errorMessage(error)}`;
  }

  #fail(uid: string, entry: Entry, error: unknown): void {
    if (this.#entries.get(uid) !== entry) return;
    entry.failure = error instanceof Error ? error : new Error(String(error));
    this.#options.onFailed(uid);
  }

  /** As `leave`, but what was waited so far still counts. */
  #drop(uid: string): void {
    this.#entries.get(uid)?.timer?.cancel();
    this.#entries.delete(uid);
  }
}

/**
 * How long a node waits before it takes a claim that any node may take: `base` doubling with each try up to `max`, less
 * a random part of up to one `base`. So the first wait is 0 to `base`, and nodes that collided once rarely collide again.
 */
export class OwnershipLimiter implements RateLimiter {
  readonly #doubling: ExponentialLimiter;
  readonly #baseMs: number;
  readonly #random: () => number;

  /** @param options.random - a number from 0 up to 1, exclusive. Default: `Math.random`. */
  constructor({ baseMs, maxMs, random = Math.random }: { baseMs: number; maxMs: number; random?: () => number }) {
    this.#doubling = new ExponentialLimiter({ baseMs, maxMs });
    this.#baseMs = baseMs;
    this.#random = random;
  }

  when(key: string): number {
    return Math.max(0, this.#doubling.when(key) - this.#random() * this.#baseMs);
  }

  forget(key: string): void {
    this.#doubling.forget(key);
  }

  failures(key: string): number {
    return this.#doubling.failures(key);
  }
}
