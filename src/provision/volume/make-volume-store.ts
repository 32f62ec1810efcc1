import type { Clock } from '../../base/clock.ts';
import { type Permit, whenPermitted } from '../../base/permit.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { RateLimiter } from '../../kube/queue/rate-limiter.ts';
import type { WorkQueue } from '../../kube/queue/work-queue.ts';
import { BlockingVolumeStore } from './blocking-volume-store.ts';
import { uidIndex } from '../cache/informers.ts';
import type { PersistentVolumeClaim } from '../objects.ts';
import type { ProvisionObserver } from '../provision-observer.ts';
import type { Provisioner } from '../provisioner.ts';
import { isRecoverable, type Recoverable } from '../recoverable.ts';
import { QueueVolumeStore } from './queue-volume-store.ts';
import type { VolumeStore, VolumeStoreParts } from './volume-store.ts';

/** How new volumes are saved. */
export type SavePolicy =
  | {
      /**
       * A few tries while the worker waits; when they fail the storage of a provisioner that is not `Recoverable` is
       * deleted again. The default.
       */
      kind: 'blocking';
      /** Default 5. */
      attempts?: number;
      /** Milliseconds between tries. Default 10,000. */
      pauseMs?: number;
    }
  | {
      /** Tries for ever in the background; storage is never deleted because its volume could not be saved. */
      kind: 'queue';
      limiter: RateLimiter;
    };

export interface VolumeStoreOptions extends VolumeStoreParts {
  save: SavePolicy | undefined;
  provisioner: Provisioner | Recoverable;
  observer: Required<ProvisionObserver>;
  claims: Lister<PersistentVolumeClaim>;
  makeQueue: (limiter: RateLimiter) => WorkQueue;
  /** Aborts when what is under way is to be abandoned. */
  abort: () => AbortSignal;
  clock: Clock;
  permit: Permit | undefined;
}

/** The store for the policy. */
export function makeVolumeStore(options: VolumeStoreOptions): VolumeStore {
  const { save = { kind: 'blocking' }, provisioner, observer, permit, claims } = options;
  if (save.kind === 'queue') {
    const claimsByUid = (uid: string): PersistentVolumeClaim[] => claims.byIndex(uidIndex, uid);
    return new QueueVolumeStore({ ...options, queue: options.makeQueue(save.limiter), claimsByUid });
  }
  const { attempts = 5, pauseMs = 10_000 } = save;
  return new BlockingVolumeStore({
    ...options,
    attempts,
    pauseMs,
    deleteStorage: isRecoverable(provisioner)
      ? undefined
      : async (volume, signal) => {
          await whenPermitted(permit, signal, () => provisioner.delete(volume, { signal, permit }));
          observer.onDeleted(volume);
        },
  });
}
