/** What a provisioner on the library is given of its process. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import type { Lister } from '../kube/cache/store.ts';
import { ConflictError, NotFoundError } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { lockKinds, type LockName } from '../kube/election/lease-record.ts';
import type { Recorder } from '../kube/events/event-recorder.ts';
import type { KubeObject, ObjectReference } from '../kube/kube-object.ts';
import type { ProvisionInformers } from '../provision/cache/informers.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import type { ProvisionController } from '../provision/provision-controller.ts';
import type { StorageIndex } from '../provision/volume/storage-holders.ts';
import type { Leading } from './election.ts';
import type { Health, HealthCheck } from './health.ts';

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

interface LockNotesOptions {
  client: KubeClient;
  /** The kinds of objects that are held. */
  held: readonly LockName[];
  namespace: string;
  name: string;
}

/** Attempts to write a note while the election renews the lock. */
const maxTries = 10;

/** Annotations of the objects that hold a lock: they outlive every process, and only the leader writes them. */
export class LockNotes {
  readonly #options: LockNotesOptions;

  constructor(options: LockNotesOptions) {
    this.#options = options;
  }

  /** What an operator annotates, such as `leases/NAME -n NAMESPACE`; the Lease, if there are several objects. */
  get object(): string {
    const { namespace, name } = this.#options;
    return `${lockKinds[this.#shown].resource.plural}/${name} -n ${namespace}`;
  }

  /**
   * What the annotation says, on each of the objects that has it.
   *
   * @throws {ApiError} and {TransportError} when it cannot be read.
   */
  async read(key: string, signal: AbortSignal): Promise<string[]> {
    const found = new Set<string>();
    for (const kind of this.#options.held) {
      const value = (await this.#get(kind, signal))?.metadata.annotations?.[key] ?? '';
      if (value !== '') found.add(value);
    }
    return [...found];
  }

  /**
   * Sets the annotation on all of the objects; may be repeated.
   *
   * @throws {ApiError} and {TransportError} when it cannot be written.
   */
  async write(key: string, value: string, signal: AbortSignal): Promise<void> {
    for (const kind of this.#options.held) await this.#writeTo(kind, { key, value }, signal);
  }

  /**
   * The object that `object` names, for events about it.
   *
   * @throws as `read`.
   */
  async reference(signal: AbortSignal): Promise<ObjectReference | undefined> {
    const kind = this.#shown;
    const { group, version, kind: name } = lockKinds[kind].resource;
    const lock = await this.#get(kind, signal);
    const apiVersion = group === '' ? version : `${group}/${version}`;
    return lock && { apiVersion, kind: name, ...this.#name, uid: lock.metadata.uid ?? '' };
  }

  async #writeTo(kind: LockName, { key, value }: { key: string; value: string }, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      const lock = await this.#get(kind, signal);
      if (lock === undefined || lock.metadata.annotations?.[key] === value) return; // it was deleted: nobody leads any more
      const metadata = { ...lock.metadata, annotations: { ...lock.metadata.annotations, [key]: value } };
      try {
        await this.#options.client.update(lockKinds[kind].resource, { ...lock, metadata }, { signal });
        return;
      } catch (error) {
        if (!(error instanceof ConflictError) || tries >= maxTries) throw error;
      }
    }
  }

  get #shown(): LockName {
    return this.#options.held.includes('endpoints') && this.#options.held.length === 1 ? 'endpoints' : 'lease';
  }

  get #name(): { namespace: string; name: string } {
    const { namespace, name } = this.#options;
    return { namespace, name };
  }

  async #get(kind: LockName, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await this.#options.client.get<KubeObject>(lockKinds[kind].resource, this.#name, { signal });
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }
}
