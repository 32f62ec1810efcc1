import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient, Subscription } from '../api/client.ts';
import { timestamp } from '../api/timestamps.ts';
import { KeyedWorker } from './keyed-worker.ts';
import type { Mirror } from './mirror.ts';
import { getObject, keyOf, nameOf, subscribeTo, updateObjectStatus } from './object-access.ts';
import { resources, type Pod } from './objects.ts';
import { isFullyBound } from './pod-claims.ts';
import { claimKeysOf, isFinished, type PodIndex } from './pod-index.ts';

/** What a `KubeletStub` needs. */
export interface KubeletStubOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
  pods: Mirror<Pod>;
  podIndex: PodIndex;
  /** Milliseconds until an assigned pod runs, and until a deleted one is gone. */
  delayMs: number;
}

/**
 * Plays the kubelet of every node: assigned pods run once their claims are bound, deleted ones go without
 * waiting for their grace period. Volumes are none of its business.
 */
export class KubeletStub implements Disposable {
  readonly #options: KubeletStubOptions;
  readonly #worker: KeyedWorker;
  #subscription: Subscription | undefined;

  constructor(options: KubeletStubOptions) {
    this.#options = options;
    const { clock, logger, delayMs } = options;
    this.#worker = new KeyedWorker({ name: 'kubelet', clock, logger, sync: (key) => this.#sync(key) });
    options.pods.listen(({ object: pod, deleted }) => {
      if (deleted) this.#worker.drop(keyOf(pod));
      else if (hasWork(pod)) this.#worker.addAfter(keyOf(pod), delayMs);
    });
  }

  start(): void {
    const { client, podIndex } = this.#options;
    this.#subscription = subscribeTo(client, resources.claims, ({ object }) => {
      for (const pod of podIndex.usersOf(keyOf(object))) if (hasWork(pod)) this.#worker.add(keyOf(pod));
    });
  }

  [Symbol.dispose](): void {
    this.#subscription?.close();
    this.#worker[Symbol.dispose]();
  }

  #sync(key: string): void {
    const { client, clock } = this.#options;
    const pod = getObject(client, resources.pods, nameOf(key));
    if (pod === undefined || !hasWork(pod)) return;
    if (pod.metadata.deletionTimestamp !== undefined) {
      const { uid } = pod.metadata;
      client.delete(resources.pods, nameOf(key), { gracePeriodSeconds: 0, ...(uid === undefined ? {} : { uid }) });
    } else if (claimKeysOf(pod).every((claimKey) => this.#isBound(claimKey))) {
      updateObjectStatus(client, resources.pods, pod, (copy) => {
        copy.status = { ...copy.status, ...runningStatus(pod, timestamp(clock.wallMs())) };
      });
    }
  }

  #isBound(claimKey: string): boolean {
    const claim = getObject(this.#options.client, resources.claims, nameOf(claimKey));
    return claim !== undefined && isFullyBound(claim);
  }
}

function hasWork(pod: Pod): boolean {
  if (!pod.spec.nodeName) return false;
  return pod.metadata.deletionTimestamp !== undefined || (pod.status?.phase !== 'Running' && !isFinished(pod));
}

function runningStatus(pod: Pod, now: string): NonNullable<Pod['status']> {
  const kept = (pod.status?.conditions ?? []).filter(({ type }) => type === 'PodScheduled');
  const ready = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady'].map((type) => ({
    type,
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: now,
  }));
  return {
    phase: 'Running',
    startTime: now,
    conditions: [...kept, ...ready],
    containerStatuses: (pod.spec.containers ?? []).map(({ name, image = '' }) => ({
      name,
      image,
      imageID: '',
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: now } },
    })),
  };
}
