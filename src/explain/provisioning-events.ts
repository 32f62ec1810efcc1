/** What the events about a claim or volume say of the attempts of its provisioner. */
import {
  causeKey,
  deletionPostponedReason,
  deletionWaitingReason,
  failedReason,
  succeededReason,
  waitingReason,
} from '../provision/event-reasons.ts';
import type { ClusterEvent } from './cluster-objects.ts';
import { found, type Reading } from './cluster-reader.ts';
import { isInTree, signOfLifeMs } from './provisioner-facts.ts';
import { durationText } from './texts.ts';

/** Events of one reason, the newest of which counts. */
export interface Recorded {
  /** The text of the newest one. */
  text: string;
  atMs: number;
  /** How often all of them were recorded; the API server forgets after an hour what is not repeated. */
  count: number;
  /** When the first of them was recorded. */
  sinceMs: number;
  /** What the provisioner says is the cause of the newest one; undefined: it does not say so. */
  cause?: string | undefined;
  /** Who has recorded the newest one. */
  component?: string | undefined;
}

/** How often the attempts failed, and when, as in `failed 7 times in 3 min, last 40 s ago`. */
export function failuresText({ count, atMs, sinceMs }: Recorded, nowMs: number): string {
  const ago = `${durationText(nowMs - atMs)} ago`;
  return count === 1 ? `failed once, ${ago}` : `failed ${count} times in ${durationText(nowMs - sinceMs)}, last ${ago}`;
}

export interface History {
  started?: Recorded | undefined;
  failed?: Recorded | undefined;
  waiting?: Recorded | undefined;
  succeeded?: Recorded | undefined;
  /** The newest of all, as a sign of life; undefined when there are none. */
  lastMs?: number | undefined;
}

/** Of kube-controller-manager, which is the provisioner of in-tree plugins. */
export const binder = 'persistentvolume-controller';
/** Components of Kubernetes itself, whose events use the same reasons. */
const notProvisioners = new Set([binder, 'default-scheduler', 'volume_expand']);

/** The attempts to create a volume. @param provisioner - who is to create it, as the claim or its class names it. */
export function provisioningHistory(events: readonly ClusterEvent[], provisioner: string): History {
  const own = events.filter((event) => {
    const component = componentOf(event);
    return isInTree(provisioner)
      ? component === binder
      : !notProvisioners.has(component) && mayBeOf(component, provisioner);
  });
  const newest = (reason: string): Recorded | undefined => recordedOf(own.filter((event) => event.reason === reason));
  const history = {
    started: newest('Provisioning'),
    failed: newest(failedReason),
    waiting: newest(waitingReason),
    succeeded: newest(succeededReason),
  };
  const times = Object.values(history).flatMap((each) => (each === undefined ? [] : [each.atMs]));
  return { ...history, lastMs: times.length === 0 ? undefined : Math.max(...times) };
}

/** Provisioners name themselves first, as in `hostpath.csi.k8s.io_node1_6e1f`: an event of another one is from before the class was recreated. */
function mayBeOf(component: string, provisioner: string): boolean {
  const [name = '', ...rest] = component.split('_');
  return rest.length === 0 || !name.includes('.') || provisioner === '' || component.startsWith(`${provisioner}_`);
}

/** The failed attempts to delete a volume, what the deletion waits for, and why it was postponed. */
export function deletionHistory(events: readonly ClusterEvent[]): Pick<History, 'failed' | 'waiting'> & {
  postponed: Recorded | undefined;
} {
  return {
    failed: recordedOf(events.filter(({ reason }) => reason === 'VolumeFailedDelete')),
    waiting: recordedOf(events.filter(({ reason }) => reason === deletionWaitingReason)),
    postponed: recordedOf(events.filter(({ reason }) => reason === deletionPostponedReason)),
  };
}

/** All of them as one; undefined for none. */
export function recordedOf(events: readonly ClusterEvent[]): Recorded | undefined {
  const newest = events.toSorted((a, b) => lastMs(a) - lastMs(b)).at(-1);
  if (newest === undefined) return undefined;
  return {
    text: (newest.message ?? '').replace(/^\(combined from similar events\): /, ''),
    atMs: lastMs(newest),
    count: events.reduce((sum, event) => sum + (event.series?.count ?? event.count ?? 1), 0),
    sinceMs: Math.min(...events.map(firstMs)),
    cause: newest.metadata.annotations?.[causeKey],
    component: componentOf(newest),
  };
}

function lastMs(event: ClusterEvent): number {
  const time = event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime;
  return Date.parse(time ?? event.firstTimestamp ?? event.metadata.creationTimestamp ?? '') || 0;
}

function firstMs(event: ClusterEvent): number {
  return Date.parse(event.firstTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '') || 0;
}

/** Who has recorded an event. */
export function componentOf({ source, reportingComponent }: ClusterEvent): string {
  return source?.component || (reportingComponent ?? '');
}

/**
 * Its newest event about a claim, as a sentence. It repeats what has not changed, at least every five minutes.
 *
 * @param reasons - of the events that count.
 * @param maxAgeMs - Infinity for what it says once.
 * @returns undefined where there is none, or it is old.
 */
export function binderWords(
  events: Reading<ClusterEvent[]> | undefined,
  reasons: readonly string[],
  nowMs: number,
  maxAgeMs = signOfLifeMs,
): string | undefined {
  const own = (found(events) ?? []).filter(
    (event) => componentOf(event) === binder && reasons.includes(event.reason ?? ''),
  );
  const newest = recordedOf(own);
  if (newest === undefined || nowMs - newest.atMs > maxAgeMs) return undefined;
  return `kube-controller-manager ${durationText(nowMs - newest.atMs)} ago: ${newest.text.replace(/\.$/, '')}.`;
}
