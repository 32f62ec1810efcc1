/** What a provisioner on the library is given of its process. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import type { Lister } from '../kube/cache/lister.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import type { ProvisionInformers } from '../provision/cache/informers.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import type { ProvisionController } from '../provision/provision-controller.ts';
import type { StorageIndex } from '../provision/volume/storage-index.ts';
import type { Leading } from './election.ts';
import type { Health, HealthCheck } from './health.ts';
import { LockNotes } from './lock-notes.ts';

/** What a provisioner may use of its process. */
export interface ProvisionerParts {
  /** Sends nothing any more once leadership is lost. */
  readonly client: KubeClient;
  /** For events on claims and volumes, from the same source as those of the controller. */
  readonly recorder: Recorder;
  /** The volumes of this provisioner, as the controller's cache has them: complete before the first claim is served. */
  readonly volumes: Lister<PersistentVolume>;
  /**
   * Volumes of whatever provisioner that have one of these `storageKeys`, as the API server has them: found in the cache, and
   * read live. Rejects when they cannot be read.
   */
  readonly volumesWith: (keys: readonly string[], signal: AbortSignal) => Promise<PersistentVolume[]>;
  /** Resolves once the caches are complete, before the first claim is served. */
  readonly synced: Promise<void>;
  /** Makes readiness depend on a check, until the returned function is called. */
  readonly addReadiness: (check: HealthCheck) => () => void;
  /** Annotations of the lock that this process holds. Undefined without leader election. */
  readonly lockNotes: LockNotes | undefined;
  readonly registry: MetricRegistry;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Aborts when what is under way is to be abandoned. */
  readonly signal: AbortSignal;
  /** Has a claim synced again, as `ProvisionController.wakeClaim` does; nothing before the provisioner is returned. */
  readonly wakeClaim: (uid: string) => void;
  /** The same for a volume, by its name. */
  readonly wakeVolume: (name: string) => void;
  /** Has what failed retried soon, as `ProvisionController.retryFailed` does. */
  readonly retryFailed: () => void;
}

/** The process that runs a provisioner. */
export interface ProcessParts {
  registry: MetricRegistry;
  ready: Health;
  /** Aborts when what is under way is to be abandoned. */
  abort: AbortSignal;
  /** Undefined without leader election. */
  leading: Leading | undefined;
}

/** What is created after the provisioner, and which its `ProvisionerParts` refer to. */
export interface StartedParts {
  informers?: ProvisionInformers;
  /** Undefined for a provisioner whose storage is not indexed. */
  storage?: StorageIndex;
  controller?: ProvisionController;
  synced: PromiseWithResolvers<undefined>;
}

/** @param started - empty at first; filled later. */
export function provisionerParts(
  {
    registry,
    ready,
    abort,
    leading,
    client,
    clock,
    logger,
  }: ProcessParts & { client: KubeClient; clock: Clock; logger: Logger },
  started: StartedParts,
): ProvisionerParts {
  return {
    client,
    volumes: {
      get: (key) => started.informers?.volumes.get(key),
      list: () => started.informers?.volumes.list() ?? [],
      byIndex: (...asked) => started.informers?.volumes.byIndex(...asked) ?? [],
    },
    volumesWith: async (keys, signal) => {
      const { storage } = started;
      if (storage === undefined || started.informers?.volumes.isFollowing !== true) {
        throw new Error('the PersistentVolumes are not known now: the API server does not respond to their watch');
      }
      return await storage.all(keys, signal);
    },
    synced: started.synced.promise.then(() => undefined),
    addReadiness: (check) => ready.add(check),
    lockNotes: leading && new LockNotes({ client, held: leading.held, ...leading.lock }),
    registry,
    logger,
    clock,
    signal: abort,
    recorder: { event: (...given) => started.controller?.recorder.event(...given) },
    wakeClaim: (uid) => started.controller?.wakeClaim(uid),
    wakeVolume: (name) => started.controller?.wakeVolume(name),
    retryFailed: () => started.controller?.retryFailed(),
  };
}
