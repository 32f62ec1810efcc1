/** What kube-controller-manager says of a claim, for those who may not read what it sees. */
import type { ClusterEvent } from './cluster-objects.ts';
import { found, type Reading } from './cluster-reader.ts';
import { binder, componentOf, recordedOf } from './provisioning-events.ts';
import { signOfLifeMs } from './serving.ts';
import { durationText } from './time-text.ts';

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
