/** The queues of a controller, and in which order the claims take their turns. */
import type { Clock } from '../base/clock.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter, type RateLimiter } from '../kube/queue/rate-limiter.ts';
import type { WaitingOrder } from '../kube/queue/waiting-order.ts';
import { WorkQueue } from '../kube/queue/work-queue.ts';
import { uidIndex } from './cache/informers.ts';
import { className } from './claim/claim-fields.ts';
import type { Flow } from './claim/claim-turns.ts';
import { FairOrder } from './claim/fair-order.ts';
import type { ControllerBase } from './controller-base.ts';
import type { Intents } from './intents/intents.ts';
import type { ProvisionControllerOptions } from './provision-controller-options.ts';

/** Default of `ProvisionControllerOptions.workers`. */
export const defaultWorkers = 4;
/** Pauses between the tries of a volume that cannot be saved, in milliseconds. */
const savePauses = { baseMs: 5, maxMs: 60_000 };
/** Max length of the name of a class. */
const maxNameLength = 253;

export interface ControllerQueues {
  claimQueue: WorkQueue;
  claimOrder: Pick<FairOrder, 'succeeded'>;
  volumeQueue: WorkQueue;
  /** Of volumes that wait to be saved. */
  unsavedQueue: WorkQueue;
  /** All that were made, by name. */
  queues: ReadonlyMap<string, WorkQueue>;
}

export function controllerQueues(
  options: Pick<ProvisionControllerOptions, 'queueMetrics' | 'limiter' | 'saveLimiter' | 'workers'>,
  { claims, clock }: Pick<ControllerBase, 'claims' | 'clock'>,
  intents: Pick<Intents, 'get'>,
): ControllerQueues {
  const { queueMetrics, limiter = defaultLimiter(clock), workers = defaultWorkers } = options;
  const { saveLimiter = new ExponentialLimiter(savePauses) } = options;
  const queues = new Map<string, WorkQueue>();
  const makeQueue = (
    name: 'claims' | 'volumes' | 'unsavedpvs',
    itsLimiter: RateLimiter,
    order?: WaitingOrder,
  ): WorkQueue => {
    const queue = new WorkQueue({ limiter: itsLimiter, clock, metrics: queueMetrics?.(name), ...(order && { order }) });
    queues.set(name, queue);
    return queue;
  };
  const flowOf = (uid: string): Flow => {
    const [claim] = claims.byIndex(uidIndex, uid);
    if (claim === undefined) return { namespace: intents.get(uid)?.record.claim.namespace ?? '', className: '' };
    const name = className(claim);
    return { namespace: claim.metadata.namespace ?? '', className: name.length > maxNameLength ? '' : name };
  };
  const claimOrder = new FairOrder({ workers, flowOf, failures: (uid) => limiter.failures(uid), clock });
  return {
    claimQueue: makeQueue('claims', limiter, claimOrder),
    claimOrder,
    volumeQueue: makeQueue('volumes', limiter), // one limiter for both, as in the Go sidecar
    unsavedQueue: makeQueue('unsavedpvs', saveLimiter),
    queues,
  };
}

function defaultLimiter(clock: Clock): RateLimiter {
  return new MaxOfLimiter([
    new ExponentialLimiter({ baseMs: 15_000, maxMs: 1_000_000 }),
    new BucketLimiter({ qps: 10, burst: 100, clock }),
  ]);
}
