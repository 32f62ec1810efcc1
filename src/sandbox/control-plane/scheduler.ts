import { isDeepStrictEqual } from 'node:util';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { SandboxClient, SandboxObject, Subscription } from '../api/client.ts';
import { CapacityIndex, largestVolume } from './capacity-index.ts';
import { EventRecorder } from './event-recorder.ts';
import { KeyedWorker } from './keyed-worker.ts';
import { Mirror, type Change } from './mirror.ts';
import { createNodeChoice, type NodeChoice, type NodeChoicePolicy } from './node-choice.ts';
import {
  getObject,
  keyOf,
  nameOf,
  resources,
  subscribeTo,
  type Node,
  type Pod,
  type StorageCapacity,
  type Volume,
} from './objects.ts';
import { checkBinding, startBinding, type PodBinding } from './pod-binding.ts';
import { reportUnscheduled } from './pod-condition.ts';
import { claimKeysOf, isFinished, type PodIndex } from './pod-index.ts';
import { schedulePod, type Placement } from './schedule-pod.ts';
import { claimKeyOf, type VolumeIndex } from './volume-index.ts';

/** Settings of the scheduler that tests and demos may change. */
export interface SchedulingSettings {
  /** Default `first`. */
  nodeChoice?: NodeChoicePolicy;
  /** After a failed binding try another node first, if another one fits. Default false. */
  avoidLastNode?: boolean;
  /** Delay before the second attempt of a pod in milliseconds, doubled with each further one. Default 1000. */
  backoffBaseMs?: number;
  /** Longest delay between attempts in milliseconds. Default 10,000. */
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

interface PodState {
  attempts: number;
  lastAttemptMs: number;
  usesClaims: boolean;
  binding?: PodBinding;
  lastNode?: string;
}

/** An unschedulable pod is tried again after this long even if nothing changed. */
const parkedMaxMs = 300_000;
const unparkEveryMs = 30_000;

/**
 * Stand-in for kube-scheduler (CP-20): one pod at a time is decided, many may wait for their volumes. A pod that fits
 * nowhere is parked until something changes that could help, and never tried again before its back-off is over.
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
  readonly #states = new Map<string, PodState>();
  readonly #parked = new Set<string>();
  readonly #podsOnNode = new Map<string, number>();
  readonly #subscriptions: Subscription[] = [];
  #sortedNodes: Node[] | undefined;
  #unparkTimer: Timer | undefined;

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
    const { client, clock } = this.#options;
    this.#nodes.start();
    this.#capacities.start();
    const wake = (): void => this.#wakeUsersOfClaims();
    this.#subscriptions.push(
      subscribeTo(client, resources.claims, ({ object }) => this.#onClaim(keyOf(object))),
      subscribeTo(client, resources.classes, wake),
      subscribeTo(client, resources.csiDrivers, wake),
      subscribeTo(client, resources.csiNodes, wake),
    );
    const unpark = (): void => {
      this.#wakeLongParked();
      this.#unparkTimer = clock.after(unparkEveryMs, unpark);
    };
    this.#unparkTimer = clock.after(unparkEveryMs, unpark);
  }

  [Symbol.dispose](): void {
    this.#unparkTimer?.cancel();
    for (const subscription of this.#subscriptions) subscription.close();
    this.#nodes[Symbol.dispose]();
    this.#capacities[Symbol.dispose]();
    this.#worker[Symbol.dispose]();
  }

  #sync(key: string): void {
    const pod = getObject(this.#options.client, resources.pods, nameOf(key));
    if (pod === undefined || !isToSchedule(pod)) {
      this.#forget(key);
      return;
    }
    let state = this.#states.get(key);
    if (state === undefined) {
      state = { attempts: 0, lastAttemptMs: 0, usesClaims: claimKeysOf(pod).length > 0 };
      this.#states.set(key, state);
    }
    if (state.binding === undefined) this.#attempt(key, pod, state);
    else this.#continueBinding(key, pod, state, state.binding);
  }

  #attempt(key: string, pod: Pod, state: PodState): void {
    const { client, clock, volumeIndex } = this.#options;
    this.#parked.delete(key);
    state.attempts++;
    state.lastAttemptMs = clock.monotonicMs();
    const context = { client, volumes: volumeIndex, capacities: this.#capacityIndex };
    const decision = schedulePod(context, pod, this.#nodesByName());
    if ('message' in decision) {
      this.#parked.add(key);
      reportUnscheduled({ client, clock, events: this.#events }, pod, 'Unschedulable', decision.message);
      return;
    }
    const placement = this.#place(decision.placements, state.lastNode);
    const { bindTimeoutMs } = this.#settings;
    state.lastNode = placement.node.metadata.name;
    state.binding = startBinding(client, placement, state.lastAttemptMs + bindTimeoutMs);
    if (!this.#continueBinding(key, pod, state, state.binding)) this.#worker.addAfter(key, bindTimeoutMs);
  }

  #place(placements: Placement[], lastNode: string | undefined): Placement {
    const others = placements.filter(({ node }) => node.metadata.name !== lastNode);
    const candidates = this.#settings.avoidLastNode && others.length > 0 ? others : placements;
    const chosen = this.#choose(candidates.map(({ node }) => node.metadata.name));
    return candidates.find(({ node }) => node.metadata.name === chosen)!;
  }

  /** @returns whether the binding came to an end, good or bad. */
  #continueBinding(key: string, pod: Pod, state: PodState, binding: PodBinding): boolean {
    const { client, clock } = this.#options;
    const progress = checkBinding(client, binding, clock.monotonicMs());
    if (progress.state === 'waiting') return false;
    if (progress.state === 'ready') {
      const { namespace = '', name } = pod.metadata;
      client.bindPod({ namespace, name }, binding.node);
      this.#events.normal(pod, 'Scheduled', `Successfully assigned ${key} to ${binding.node}`);
      this.#forget(key);
      return true;
    }
    this.#worker.drop(key);
    delete state.binding;
    const message = `running PreBind plugin "VolumeBinding": binding volumes: ${progress.why}`;
    // Tried again without waiting for a change: the change has happened already.
    this.#retry(key, state);
    reportUnscheduled({ client, clock, events: this.#events }, pod, 'SchedulerError', message);
    return true;
  }

  #retry(key: string, { attempts, lastAttemptMs }: PodState): void {
    const { backoffBaseMs, backoffMaxMs } = this.#settings;
    const backoffMs = Math.min(backoffBaseMs * 2 ** (attempts - 1), backoffMaxMs);
    this.#worker.addAfter(key, Math.max(0, lastAttemptMs + backoffMs - this.#options.clock.monotonicMs()));
  }

  #wake(key: string): void {
    const state = this.#states.get(key);
    if (state !== undefined && this.#parked.delete(key)) this.#retry(key, state);
  }

  #wakeAll(): void {
    for (const key of this.#parked) this.#wake(key);
  }

  #wakeUsersOfClaims(): void {
    for (const key of this.#parked) if (this.#states.get(key)?.usesClaims === true) this.#wake(key);
  }

  #wakeLongParked(): void {
    const parkedBeforeMs = this.#options.clock.monotonicMs() - parkedMaxMs;
    for (const key of this.#parked) {
      if ((this.#states.get(key)?.lastAttemptMs ?? 0) <= parkedBeforeMs) this.#wake(key);
    }
  }

  #forget(key: string): void {
    this.#states.delete(key);
    this.#parked.delete(key);
    this.#worker.drop(key);
  }

  #onPod({ object: pod, previous, deleted }: Change<Pod>): void {
    const key = keyOf(pod);
    this.#countOnNode(pod.spec.nodeName, previous?.spec.nodeName, deleted);
    if (deleted) this.#forget(key);
    else if (!isToSchedule(pod)) return;
    else if (!this.#states.has(key)) this.#worker.add(key);
    else if (previous !== undefined && !isDeepStrictEqual(previous.spec, pod.spec)) this.#wake(key);
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
      if (this.#states.get(key)?.binding === undefined) this.#wake(key);
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
    this.#wakeAll();
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
