/** Removes the cloning protection from claims that are being deleted, once no pending claim and no volume in progress clones them. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { ForbiddenError, NotFoundError } from '../../kube/client/api-error.ts';
import type { Informer } from '../../kube/cache/informer.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { objectKey } from '../../kube/kube-object.ts';
import type { Recorder } from '../../kube/events/event-recorder.ts';
import { ExponentialLimiter } from '../../kube/queue/rate-limiter.ts';
import { WorkQueue, type WorkQueueMetrics } from '../../kube/queue/work-queue.ts';
import { claimReference } from '../../provision/claim-fields.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { runWorkers } from '../../provision/run-workers.ts';
import { cloningProtection, cloningProtectionFinalizer, removeFinalizer } from './finalizers.ts';
import type { OpenSource } from './data-source.ts';

/** Resync period of the claims, in milliseconds. */
const resyncMs = 15 * 60_000;
/** An event about what holds a claim is repeated after this time, in milliseconds: the API server keeps it for an hour. */
const repeatMs = 30 * 60_000;

export interface CloningProtectionOptions {
  client: KubeClient;
  /** All claims; shared with the provision controller. */
  claims: Pick<Informer<PersistentVolumeClaim>, 'get' | 'list' | 'addHandler'>;
  /** Sources of volumes in progress, also of claims that are gone. Default: none. */
  plannedSources?: (() => Iterable<OpenSource>) | undefined;
  /** Records events about claims that keep their protection. Default: none are recorded. */
  recorder?: Recorder | undefined;
  /** `--cloning-protection-threads`. */
  workers: number;
  /** `--retry-interval-start`, in milliseconds. */
  retryStartMs: number;
  /** `--retry-interval-max`, in milliseconds. */
  retryMaxMs: number;
  /** Of the queue named `claims`, which the provisioning queue shares. */
  queueMetrics?: WorkQueueMetrics | undefined;
  clock: Clock;
  logger: Logger;
}

/**
 * Only needed for drivers with CLONE_VOLUME. The finalizer stays on a source that is not being deleted, also after the
 * clone is done.
 */
export class CloningProtectionController {
  readonly #options: CloningProtectionOptions;
  readonly #queue: WorkQueue;
  /** By the claim's key: the event that was recorded last, and when, in monotonic milliseconds. */
  readonly #lastEvents = new Map<string, { text: string; atMs: number }>();

  constructor(options: CloningProtectionOptions) {
    this.#options = options;
    const limiter = new ExponentialLimiter({ baseMs: options.retryStartMs, maxMs: options.retryMaxMs });
    this.#queue = new WorkQueue({ limiter, clock: options.clock, metrics: options.queueMetrics });
  }

  /**
   * Works until it is stopped; resolves when the last claim under work is done. To be called once, after the cache has
   * synced.
   *
   * @param options.stop - ends the taking of claims. @param options.abort - ends the work on those already taken.
   */
  async run({ stop, abort }: { stop: AbortSignal; abort: AbortSignal }): Promise<void> {
    const { claims, workers, clock, logger } = this.#options;
    const enqueue = (claim: PersistentVolumeClaim): void => {
      if (isDeletionCandidate(claim)) this.#queue.add(objectKey(claim));
    };
    logger.info({}, 'Starting CloningProtection controller');
    const registration = claims.addHandler({ onAdd: enqueue, onUpdate: (_, claim) => enqueue(claim) }, { resyncMs });
    try {
      const sync = (key: string, signal: AbortSignal): Promise<void> => this.#sync(key, signal);
      const rest = { failureThreshold: 0, timeoutMs: 0, what: 'claim' };
      await runWorkers({ queue: this.#queue, count: workers, sync, stop, abort, clock, logger, ...rest });
    } finally {
      registration.remove();
    }
  }

  async #sync(key: string, signal: AbortSignal): Promise<void> {
    const { claims, client, recorder, logger } = this.#options;
    const claim = claims.get(key);
    if (claim === undefined || !isDeletionCandidate(claim)) {
      this.#lastEvents.delete(key);
      return;
    }
    const { namespace = '', name, uid } = claim.metadata;
    try {
      this.#checkCloned(claim);
      await removeFinalizer<PersistentVolumeClaim>({
        client,
        ...cloningProtection,
        object: { namespace, name },
        signal,
        check: (live) => {
          if (live.metadata.uid !== uid) throw new Error(`PVC '${key}' was replaced by another of the same name`);
          this.#checkCloned(claim);
        },
      });
      this.#lastEvents.delete(key);
      logger.info({ claim: key }, 'Removed the cloning protection');
    } catch (error) {
      if (error instanceof NotFoundError) {
        this.#lastEvents.delete(key);
        return;
      }
      if (error instanceof ClonedError) this.#recordWaiting(claim, error.eventText);
      else if (error instanceof ForbiddenError) {
        const message = `The cloning protection could not be removed, the claim stays until it is: ${error.message}`;
        recorder?.event(claimReference(claim), 'Warning', 'CloneProtectionFailed', message);
      }
      throw error;
    }
  }

  /** Records an event on a claim that keeps its protection; once for all instances. */
  #recordWaiting(claim: PersistentVolumeClaim, text: string): void {
    const { recorder, clock } = this.#options;
    const key = objectKey(claim);
    const atMs = clock.monotonicMs();
    const last = this.#lastEvents.get(key);
    if (last?.text === text && atMs - last.atMs < repeatMs) return;
    this.#lastEvents.set(key, { text, atMs });
    recorder?.event(claimReference(claim), 'Normal', 'CloneProtectionWaiting', text, { once: true });
  }

  /** @throws {ClonedError} while the claim must keep its protection. */
  #checkCloned(source: PersistentVolumeClaim): void {
    const key = objectKey(source);
    // recorded volumes first: they normally finish on their own, while a pending claim may never be bound
    const planned = this.#plannedFor(source);
    if (planned !== undefined) {
      throw new ClonedError(
        `PVC '${key}' is the source of a volume in progress`,
        `Waiting until the volume of claim ${planned}, which is cloned from this claim, is complete or certain not to exist; ` +
          'if that claim is gone and this one remains, run: csi-provisioner journal list',
      );
    }
    const pending = this.#pendingClone(source);
    if (pending !== undefined) {
      throw new ClonedError(
        `PVC '${key}' is in 'Pending' state, cloning in progress`,
        `Waiting until claim ${pending}, which is to be cloned from this claim, is bound or deleted. ` +
          `If that clone had not begun before this claim was deleted, it never will: delete claim ${pending}`,
      );
    }
  }

  /** @returns the claim whose volume in progress is cloned from it. */
  #plannedFor({ metadata }: PersistentVolumeClaim): string | undefined {
    for (const { claim, source } of this.#options.plannedSources?.() ?? []) {
      if (source.handling === 'clone' && source.uid === metadata.uid) return claim;
    }
    return undefined;
  }

  /** @returns the pending claim of the namespace that names it, whichever driver will make the clone. */
  #pendingClone(source: PersistentVolumeClaim): string | undefined {
    const { namespace, name } = source.metadata;
    for (const claim of this.#options.claims.list()) {
      const { metadata, spec, status } = claim;
      if (
        status?.phase === 'Pending' &&
        spec.dataSource?.kind === 'PersistentVolumeClaim' &&
        spec.dataSource.name === name &&
        metadata.namespace === namespace
      ) {
        return objectKey(claim);
      }
    }
    return undefined;
  }
}

/** Checked again at each sync: the key may be that of a recreated claim by then. */
function isDeletionCandidate({ metadata: { deletionTimestamp, finalizers } }: PersistentVolumeClaim): boolean {
  return deletionTimestamp !== undefined && finalizers?.includes(cloningProtectionFinalizer) === true;
}

/** A claim is being cloned, or is to be. */
class ClonedError extends Error {
  override readonly name = 'ClonedError';
  /** Message of the event on the source. */
  readonly eventText: string;

  constructor(message: string, eventText: string) {
    super(message);
    this.eventText = eventText;
  }
}
