/** How long ago something was, and how long it takes. */
import type { KubeObject } from '../kube/kube-object.ts';

/** `45 s`, `12 min`, `3 h`, `5 d`: how long something takes or took, rounded down. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

/** When an object was last changed by anybody, in milliseconds since the Unix epoch: its content is no older than that. */
export function lastChangeMs({ metadata }: KubeObject): number {
  const times = [metadata.creationTimestamp, ...(metadata.managedFields ?? []).map(({ time }) => time)];
  return Math.max(...times.flatMap((time) => Date.parse(time ?? '') || []));
}
