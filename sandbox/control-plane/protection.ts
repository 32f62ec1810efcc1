import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient, Subscription } from '../api/client.ts';
import { claimProtectionFinalizer, volumeProtectionFinalizer } from './annotations.ts';
import { KeyedWorker } from './keyed-worker.ts';
import type { Mirror } from './mirror.ts';
import { getObject, keyOf, listObjects, nameOf, subscribeTo, updateObject } from './object-access.ts';
import { type Claim, type Pod, resources, type Volume } from './objects.ts';
import { claimKeysOf, claimNameOf, type PodIndex } from './pod-index.ts';

/** What a `ClaimProtection` needs. */
interface ClaimProtectionOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
  pods: Mirror<Pod>;
  podIndex: PodIndex;
}

/**
 * Keeps a deleted claim until no scheduled pod uses it (Kubernetes, "Storage Object in Use Protection").
 * Completed pods count until their objects are gone.
 */
export class ClaimProtection implements Disposable {
  readonly #options: ClaimProtectionOptions;
  readonly #worker: KeyedWorker;
  /** Pods per namespace as of this very turn: between two syncs of one turn nobody else can write. */
  readonly #livePods = new Map<string, Pod[]>();
  #subscription: Subscription | undefined;

  constructor(options: ClaimProtectionOptions) {
    this.#options = options;
    const { clock, logger } = options;
    this.#worker = new KeyedWorker({ name: 'claim-protection', clock, logger, sync: (key) => this.#sync(key) });
    options.pods.listen(({ object: pod }) => {
      for (const key of claimKeysOf(pod)) if (this.#needsSync(this.#get(key))) this.#worker.add(key);
    });
  }

  start(): void {
    const { client } = this.#options;
    this.#subscription = subscribeTo(client, resources.claims, ({ type, object }) => {
      if (type !== 'DELETED' && this.#needsSync(object)) this.#worker.add(keyOf(object));
    });
    for (const claim of listObjects(client, resources.claims)) {
      if (this.#needsSync(claim)) this.#worker.add(keyOf(claim));
    }
  }

  [Symbol.dispose](): void {
    this.#subscription?.close();
    this.#worker[Symbol.dispose]();
  }

  #get(key: string): Claim | undefined {
    return getObject(this.#options.client, resources.claims, nameOf(key));
  }

  #needsSync(claim: Claim | undefined): claim is Claim {
    return claim !== undefined && isProtected(claim) === (claim.metadata.deletionTimestamp !== undefined);
  }

  #sync(key: string): void {
    const claim = this.#get(key);
    if (!this.#needsSync(claim)) return;
    const { client } = this.#options;
    if (claim.metadata.deletionTimestamp === undefined) {
      updateObject(client, resources.claims, claim, ({ metadata }) => {
        metadata.finalizers = [...(metadata.finalizers ?? []), claimProtectionFinalizer];
      });
    } else if (!this.#isInUse(claim)) {
      updateObject(client, resources.claims, claim, ({ metadata }) => {
        metadata.finalizers = (metadata.finalizers ?? []).filter((finalizer) => finalizer !== claimProtectionFinalizer);
      });
    }
  }

  /** The index is cheap to ask but may be a moment old, so a "no" is confirmed by a live list. */
  #isInUse(claim: Claim): boolean {
    const { podIndex } = this.#options;
    if (podIndex.usersOf(keyOf(claim)).some((pod) => uses(pod, claim))) return true;
    return this.#listPods(claim.metadata.namespace ?? '').some((pod) => uses(pod, claim));
  }

  #listPods(namespace: string): Pod[] {
    let pods = this.#livePods.get(namespace);
    if (pods === undefined) {
      pods = listObjects(this.#options.client, resources.pods, { namespace });
      if (this.#livePods.size === 0) queueMicrotask(() => this.#livePods.clear());
      this.#livePods.set(namespace, pods);
    }
    return pods;
  }
}

function isProtected(claim: Claim): boolean {
  return claim.metadata.finalizers?.includes(claimProtectionFinalizer) ?? false;
}

function uses(pod: Pod, claim: Claim): boolean {
  if (!pod.spec.nodeName) return false;
  return (pod.spec.volumes ?? []).some((volume) => {
    if (claimNameOf(pod, volume) !== claim.metadata.name) return false;
    return volume.persistentVolumeClaim !== undefined || (owns(pod, claim) && !isShutDown(pod));
  });
}

function owns(pod: Pod, claim: Claim): boolean {
  const owners = claim.metadata.ownerReferences ?? [];
  return owners.some(({ uid, controller }) => uid === pod.metadata.uid && controller === true);
}

function isShutDown({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0;
}

/** What a `VolumeProtection` needs. */
interface VolumeProtectionOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
}

/** Keeps a deleted volume while it is bound (Kubernetes, "Storage Object in Use Protection"). */
export class VolumeProtection implements Disposable {
  readonly #client: SandboxClient;
  readonly #worker: KeyedWorker;
  #subscription: Subscription | undefined;

  constructor({ client, clock, logger }: VolumeProtectionOptions) {
    this.#client = client;
    this.#worker = new KeyedWorker({ name: 'volume-protection', clock, logger, sync: (name) => this.#sync(name) });
  }

  start(): void {
    this.#subscription = subscribeTo(this.#client, resources.volumes, ({ type, object }) => {
      if (type !== 'DELETED' && needsWrite(object)) this.#worker.add(keyOf(object));
    });
    for (const volume of listObjects(this.#client, resources.volumes)) {
      if (needsWrite(volume)) this.#worker.add(keyOf(volume));
    }
  }

  [Symbol.dispose](): void {
    this.#subscription?.close();
    this.#worker[Symbol.dispose]();
  }

  #sync(name: string): void {
    const volume = getObject(this.#client, resources.volumes, { name });
    if (volume === undefined || !needsWrite(volume)) return;
    updateObject(this.#client, resources.volumes, volume, ({ metadata }) => {
      const others = (metadata.finalizers ?? []).filter((finalizer) => finalizer !== volumeProtectionFinalizer);
      metadata.finalizers = metadata.deletionTimestamp === undefined ? [...others, volumeProtectionFinalizer] : others;
    });
  }
}

function needsWrite({ metadata, status }: Volume): boolean {
  const isProtected = metadata.finalizers?.includes(volumeProtectionFinalizer) ?? false;
  if (metadata.deletionTimestamp === undefined) return !isProtected;
  return isProtected && status?.phase !== 'Bound';
}
