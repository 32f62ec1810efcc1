import type { Clock, Timer } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient, Subscription } from '../api/client.ts';
import { annotation } from './annotations.ts';
import type { BinderContext } from './binder-context.ts';
import { claimClass, isDelayed, isMarkedDefault } from './claim-class.ts';
import { EventRecorder } from './event-recorder.ts';
import { isAvailableFor } from './find-volume.ts';
import { KeyedWorker } from './keyed-worker.ts';
import { type Change, type Mirror, MultiMap } from './mirror.ts';
import { getObject, hasAnnotation, keyOf, listObjects, nameOf, subscribeTo, type TypedEvent } from './object-access.ts';
import { type Claim, type Pod, resources, type StorageClass, type Volume } from './objects.ts';
import { claimKeysOf, type PodIndex } from './pod-index.ts';
import { syncClaim } from './sync-claim.ts';
import { syncVolume } from './sync-volume.ts';
import { claimKeyOf, type VolumeIndex } from './volume-index.ts';

/** What a `PvBinder` needs. */
interface PvBinderOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
  /** Milliseconds between two rounds over all claims and volumes. */
  resyncMs: number;
  volumes: Mirror<Volume>;
  volumeIndex: VolumeIndex;
  pods: Mirror<Pod>;
  podIndex: PodIndex;
}

/** The scheduler normally needs less; only for pods that stay behind is there something to report. */
const schedulingGraceMs = 200;

/**
 * The persistent-volume binder: one worker for claims, one for volumes, both woken by changes and, every
 * `resyncMs`, by a round over everything. It reads the store live and keeps indexes only, so a sync costs the same
 * among ten claims and among ten thousand.
 */
export class PvBinder implements Disposable {
  readonly #options: PvBinderOptions;
  readonly #claims: KeyedWorker;
  readonly #volumes: KeyedWorker;
  readonly #unscheduled: KeyedWorker;
  readonly #waiting = new WaitingClaims();
  /** Resource version of each claim as its last sync left it: the event of an own write needs no other sync. */
  readonly #synced = new Map<string, number>();
  readonly #subscriptions: Subscription[] = [];
  readonly #context: BinderContext;
  #resync: Timer | undefined;

  constructor(options: PvBinderOptions) {
    this.#options = options;
    const { client, clock, logger } = options;
    this.#context = {
      client,
      logger,
      events: new EventRecorder({ client, clock, component: 'persistentvolume-controller' }),
      volumes: options.volumeIndex,
      pods: options.podIndex,
      enqueueClaim: (claim) => this.#claims.add(keyOf({ metadata: claim })),
      enqueueVolume: (name) => this.#volumes.add(name),
    };
    const pace = { clock, logger, backoffBaseMs: 10, backoffMaxMs: options.resyncMs };
    this.#claims = new KeyedWorker({ ...pace, name: 'claims', sync: (key) => this.#syncClaim(key) });
    this.#volumes = new KeyedWorker({ ...pace, name: 'volumes', sync: (name) => syncVolume(this.#context, name) });
    this.#unscheduled = new KeyedWorker({ ...pace, name: 'unscheduled', sync: (key) => this.#remindOfPod(key) });
    options.volumes.listen((change) => this.#onVolume(change));
    options.pods.listen((change) => this.#onPod(change));
  }

  /** Starts with everything there is; the mirrors must be started after it. */
  start(): void {
    const { client } = this.#options;
    this.#subscriptions.push(
      subscribeTo(client, resources.claims, (event) => this.#onClaim(event)),
      subscribeTo(client, resources.classes, (event) => this.#onClass(event)),
    );
    this.#startRound();
  }

  [Symbol.dispose](): void {
    this.#resync?.cancel();
    for (const subscription of this.#subscriptions) subscription.close();
    this.#claims[Symbol.dispose]();
    this.#volumes[Symbol.dispose]();
    this.#unscheduled[Symbol.dispose]();
  }

  #startRound(): void {
    const { client, clock, resyncMs } = this.#options;
    for (const volume of listObjects(client, resources.volumes)) this.#volumes.add(keyOf(volume));
    for (const claim of listObjects(client, resources.claims)) this.#claims.add(keyOf(claim));
    this.#resync = clock.after(resyncMs, () => this.#startRound());
  }

  #syncClaim(key: string): void {
    const name = nameOf(key);
    syncClaim(this.#context, name);
    const claim = getObject(this.#options.client, resources.claims, name);
    if (claim === undefined) {
      this.#waiting.forget(key);
      this.#synced.delete(key);
      return;
    }
    this.#waiting.note(claim);
    this.#synced.set(key, Number(claim.metadata.resourceVersion));
  }

  #onClaim({ type, object: claim }: TypedEvent<Claim>): void {
    const key = keyOf(claim);
    if (type === 'DELETED') {
      this.#synced.delete(key);
      if (claim.spec.volumeName) this.#volumes.add(claim.spec.volumeName);
    } else if (Number(claim.metadata.resourceVersion) <= (this.#synced.get(key) ?? 0)) {
      return;
    }
    this.#claims.add(key);
  }

  #onVolume({ object: volume, previous, deleted }: Change<Volume>): void {
    const { name } = volume.metadata;
    for (const key of this.#waiting.ofVolume(name)) this.#claims.add(key);
    const claimKey = claimKeyOf(volume);
    // A deleted volume makes its claim Lost; a reserved one may be what the claim waits for.
    if (claimKey !== undefined && (deleted || !volume.spec.claimRef?.uid)) this.#claims.add(claimKey);
    if (deleted) return;
    this.#volumes.add(name);
    if (isFree(volume) && (previous === undefined || !isFree(previous))) this.#offer(volume);
  }

  /** Wakes one claim that the volume would do for; the others could not have it as well. */
  #offer(volume: Volume): void {
    const { client } = this.#options;
    const className = volume.spec.storageClassName ?? '';
    if (isDelayed(client, className)) return;
    for (const key of this.#waiting.ofClass(className)) {
      const claim = getObject(client, resources.claims, nameOf(key));
      if (claim === undefined || claim.spec.volumeName || !isAvailableFor(volume, claim)) continue;
      this.#waiting.forget(key); // the next volume is for another claim; a sync in vain notes this one again
      this.#claims.add(key);
      return;
    }
  }

  #onClass({ type, object: storageClass }: TypedEvent<StorageClass>): void {
    if (type === 'DELETED') return;
    for (const key of this.#waiting.ofClass(storageClass.metadata.name)) this.#claims.add(key);
    if (!isMarkedDefault(storageClass)) return;
    for (const key of this.#waiting.ofClass('')) this.#claims.add(key);
  }

  #onPod({ object: pod, previous, deleted }: Change<Pod>): void {
    if (deleted || previous !== undefined || pod.spec.nodeName) return;
    for (const key of claimKeysOf(pod)) this.#unscheduled.addAfter(key, schedulingGraceMs);
  }

  /** A new pod changes what a delayed claim reports, unless the scheduler has chosen a node by now. */
  #remindOfPod(key: string): void {
    if (!this.#waiting.has(key)) return;
    const claim = getObject(this.#options.client, resources.claims, nameOf(key));
    if (claim !== undefined && !hasAnnotation(claim, annotation.selectedNode)) this.#claims.add(key);
  }
}

function isFree(volume: Volume): boolean {
  return volume.status?.phase === 'Available' && volume.spec.claimRef === undefined;
}

interface Place {
  className: string;
  volumeName: string;
}

/** Claims that are not bound yet, by what they may be waiting for, so that its arrival wakes them at once. */
class WaitingClaims {
  readonly #places = new Map<string, Place>();
  readonly #byClass = new MultiMap<string>();
  readonly #byVolume = new MultiMap<string>();

  /** Files the claim under its class and wanted volume, or forgets it once binding is complete. */
  note(claim: Claim): void {
    const key = keyOf(claim);
    this.forget(key);
    if (hasAnnotation(claim, annotation.bindCompleted)) return;
    const place = { className: claimClass(claim), volumeName: claim.spec.volumeName ?? '' };
    this.#places.set(key, place);
    this.#byClass.add(place.className, key);
    if (place.volumeName !== '') this.#byVolume.add(place.volumeName, key);
  }

  /** Safe to repeat. */
  forget(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    this.#byClass.delete(place.className, key);
    this.#byVolume.delete(place.volumeName, key);
  }

  has(key: string): boolean {
    return this.#places.has(key);
  }

  /** Keys of the waiting claims of the class, oldest first; the empty name stands for claims without one. */
  ofClass(className: string): Iterable<string> {
    return this.#byClass.get(className);
  }

  /** Keys of the waiting claims that name this volume. */
  ofVolume(volumeName: string): Iterable<string> {
    return this.#byVolume.get(volumeName);
  }
}
