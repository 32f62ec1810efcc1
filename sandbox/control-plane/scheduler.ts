import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient, SandboxObject, Subscription } from '../api/client.ts';
import { CapacityIndex, largestVolume } from './capacity-index.ts';
import { EventRecorder } from './event-recorder.ts';
import { KeyedWorker } from './keyed-worker.ts';
import { type Change, Mirror } from './mirror.ts';
import { createNodeChoice, type NodeChoice, type NodeChoicePolicy } from './node-choice.ts';
import { reportUnscheduled } from './pod-condition.ts';
import { getObject, keyOf, nameOf, subscribeTo } from './object-access.ts';
import { type Node, type Pod, resources, type StorageCapacity, type Volume } from './objects.ts';
import { checkBinding, type PodBinding, startBinding } from './pod-binding.ts';
import { claimKeysOf, isFinished, type PodIndex } from './pod-index.ts';
import { type Placement, schedulePod } from './schedule-pod.ts';
import { type PodState, SchedulingQueue } from './scheduling-queue.ts';
import { claimKeyOf, type VolumeIndex } from './volume-index.ts';

/** Settings of the scheduler that tests and demos may change. */
export interface SchedulingSettings {
  /** Default `first`. */
  nodeChoice?: NodeChoicePolicy;
  /** After a failed binding try another node first, if another one fits. Default false. */
  avoidLastNode?: boolean;
  /** Delay before the second attempt of a pod in milliseconds, doubled with each further one. Default 1000. */
  backoffBaseMs?: number;
  /** Max delay between attempts in milliseconds. Default 10,000. */
  backoffMaxMs?: number;
  /** How long claims may take to be bound, in milliseconds. Default 600,000. */
  bindTimeoutMs?: number;
}

/** What a `Scheduler` needs. */
export interface SchedulerOptions {
  client: SandboxClient;
  clock: Clock;
  logger: Logger;
  pods: Mirror<Pod>;
  podIndex: PodIndex;
  volumes: Mirror<Volume>;
  volumeIndex: VolumeIndex;
  settings?: SchedulingSettings;
}

/**
 * Stand-in for kube-scheduler: one pod at a time is decided, many may wait for their volumes.
 */
export class Scheduler implements Disposable {
  readonly #options: SchedulerOptions;
  readonly #settings: Required<SchedulingSettings>;
  readonly #worker: KeyedWorker;
  readonly #events: EventRecorder;
  readonly #nodes: Mirror<Node>;
  readonly #capacities: Mirror<StorageCapacity>;
  readonly #capacityIndex: CapacityIndex;
  readonly #choose: NodeChoice;
  readonly #queue: SchedulingQueue;
  readonly #podsOnNode = new Map<string, number>();
  readonly #subscriptions: Subscription[] = [];
  #sortedNodes: Node[] | undefined;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#settings = {
      nodeChoice: 'first',
      avoidLastNode: false,
      backoffBaseMs: 1000,
      backoffMaxMs: 10_000,
      bindTimeoutMs: 600_000,
      ...options.settings,
    };
    const { client, clock, logger } = options;
    this.#worker = new KeyedWorker({ name: 'scheduler', clock, logger, sync: (key) => this.#sync(key) });
    const { backoffBaseMs, backoffMaxMs } = this.#settings;
    this.#queue = new SchedulingQueue({ worker: this.#worker, clock, backoffBaseMs, backoffMaxMs });
    this.#events = new EventRecorder({ client, clock, component: 'default-scheduler' });
    this.#choose = createNodeChoice(this.#settings.nodeChoice, (node) => this.#podsOnNode.get(node) ?? 0);
    this.#nodes = new Mirror(client, resources.nodes);
    this.#nodes.listen((change) => this.#onNode(change));
    this.#capacities = new Mirror(client, resources.capacities);
    this.#capacityIndex = new CapacityIndex(this.#capacities);
    this.#capacities.listen((change) => {
      if (isMoreRoom(change)) this.#wakeUsersOfClaims();
    });
    options.pods.listen((change) => this.#onPod(change));
    options.volumes.listen((change) => this.#onVolume(change));
  }

  /** To be called before the mirrors are started. */
  start(): void {
    const { client } = this.#options;
    this.#nodes.start();
    this.#capacities.start();
    const wake = (): void => this.#wakeUsersOfClaims();
    this.#subscriptions.push(
      subscribeTo(client, resources.claims, ({ object }) => this.#onClaim(keyOf(object))),
      subscribeTo(client, resources.classes, wake),
      subscribeTo(client, resources.csiDrivers, wake),
      subscribeTo(client, resources.csiNodes, wake),
    );
  }

  [Symbol.dispose](): void {
    this.#queue[Symbol.dispose]();
    for (const subscription of this.#subscriptions) subscription.close();
    this.#nodes[Symbol.dispose]();
    this.#capacities[Symbol.dispose]();
    this.#worker[Symbol.dispose]();
  }

  #sync(key: string): void {
    const pod = getObject(this.#options.client, resources.pods, nameOf(key));
    if (pod === undefined || !isToSchedule(pod)) {
      this.#queue.forget(key);
      return;
    }
    const state = this.#queue.state(key);
    if (state?.binding === undefined) this.#attempt(key, pod);
    else this.#continueBinding(key, pod, state, state.binding);
  }

  #attempt(key: string, pod: Pod): void {
    const { client, clock, volumeIndex } = this.#options;
    const state = this.#queue.startAttempt(key, claimKeysOf(pod).length > 0);
    const context = { client, volumes: volumeIndex, capacities: this.#capacityIndex };
    const decision = schedulePod(context, pod, this.#nodesByName());
    if ('message' in decision) {
      this.#queue.park(key);
      reportUnscheduled({ client, clock, events: this.#events }, pod, 'Unschedulable', decision.message);
      return;
    }
    const placement = this.#place(decision.placements, state.lastNode);
    const { bindTimeoutMs } = this.#settings;
    state.lastNode = placement.node.metadata.name;
    state.binding = startBinding(client, placement, state.lastAttemptMs + bindTimeoutMs);
    this.#continueBinding(key, pod, state, state.binding);
  }

  #place(placements: Placement[], lastNode: string | undefined): Placement {
    const others = placements.filter(({ node }) => node.metadata.name !== lastNode);
    const candidates = this.#settings.avoidLastNode && others.length > 0 ? others : placements;
    const chosen = this.#choose(candidates.map(({ node }) => node.metadata.name));
    return candidates.find(({ node }) => node.metadata.name === chosen)!;
  }

  #continueBinding(key: string, pod: Pod, state: PodState, binding: PodBinding): void {
    const { client, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const progress = checkBinding(client, binding, nowMs);
    if (progress.state === 'waiting') {
      this.#worker.addAfter(key, Math.max(1, binding.deadlineMs - nowMs));
    } else if (progress.state === 'ready') {
      const { namespace = '', name } = pod.metadata;
      client.bindPod({ namespace, name }, binding.node);
      this.#events.normal(pod, 'Scheduled', `Successfully assigned ${key} to ${binding.node}`);
      this.#queue.forget(key);
    } else {
      this.#worker.drop(key); // the timer of the deadline
      delete state.binding;
      // Tried again without waiting for a change: the change has happened already.
      this.#queue.retry(key, state);
      const message = `running PreBind plugin "VolumeBinding": binding volumes: ${progress.why}`;
      reportUnscheduled({ client, clock, events: this.#events }, pod, 'SchedulerError', message);
    }
  }

  #wakeUsersOfClaims(): void {
    this.#queue.wakeParked(({ usesClaims }) => usesClaims);
  }

  #onPod({ object: pod, previous, deleted }: Change<Pod>): void {
    const key = keyOf(pod);
    this.#countOnNode(pod.spec.nodeName, previous?.spec.nodeName, deleted);
    if (deleted) this.#queue.forget(key);
    else if (!isToSchedule(pod)) return;
    else if (this.#queue.state(key) === undefined) this.#worker.add(key);
    else if (previous !== undefined && !isDeepStrictEqual(previous.spec, pod.spec)) this.#queue.wake(key);
  }

  #countOnNode(node: string | undefined, before: string | undefined, deleted: boolean): void {
    const count = (name: string, change: number): void => {
      this.#podsOnNode.set(name, (this.#podsOnNode.get(name) ?? 0) + change);
    };
    if (before) count(before, -1);
    if (node && !deleted) count(node, 1);
  }

  #onClaim(claimKey: string): void {
    for (const pod of this.#options.podIndex.usersOf(claimKey)) {
      const key = keyOf(pod);
      if (this.#queue.state(key)?.binding === undefined) this.#queue.wake(key);
      else this.#worker.add(key);
    }
  }

  #onVolume({ object, previous, deleted }: Change<Volume>): void {
    for (const claimKey of new Set([claimKeyOf(object), previous && claimKeyOf(previous)])) {
      if (claimKey !== undefined) this.#onClaim(claimKey);
    }
    if (!deleted) this.#wakeUsersOfClaims();
  }

  #onNode({ object, previous, deleted }: Change<Node>): void {
    this.#sortedNodes = undefined;
    if (deleted || (previous !== undefined && sameForPods(previous, object))) return;
    this.#queue.wakeParked();
  }

  #nodesByName(): Node[] {
    this.#sortedNodes ??= [...this.#nodes.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    return this.#sortedNodes;
  }
}

function isToSchedule(pod: Pod): boolean {
  const { nodeName, schedulerName = 'default-scheduler', schedulingGates = [] } = pod.spec;
  return (
    !nodeName &&
    pod.metadata.deletionTimestamp === undefined &&
    schedulerName === 'default-scheduler' &&
    schedulingGates.length === 0 &&
    !isFinished(pod)
  );
}

/** A node's heartbeats change nothing for pods. */
function sameForPods(a: Node, b: Node): boolean {
  const relevant = ({ metadata, spec }: SandboxObject): unknown => [metadata.labels, spec];
  return isDeepStrictEqual(relevant(a), relevant(b));
}

function isMoreRoom({ object, previous, deleted }: Change<StorageCapacity>): boolean {
  if (deleted) return false;
  if (previous === undefined) return true;
  return (largestVolume(object) ?? 0n) > (largestVolume(previous) ?? 0n);
}
