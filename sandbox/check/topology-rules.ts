/** Which segments a driver may answer with (CSI spec, "CreateVolume", message `Topology`). */
import type { StringMap } from './csi-messages.ts';

const name = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const prefix = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** What is wrong with segments, in words. */
export function segmentMistakes(segments: StringMap): string[] {
  const keys = Object.keys(segments);
  const lower = keys.map((key) => key.toLowerCase());
  return [
    ...keys
      .filter((key) => !isKey(key))
      .map((key) => `${JSON.stringify(key)} is not a valid topology key or label key`),
    ...Object.entries(segments)
      .filter(([, value]) => !name.test(value))
      .map(
        ([key, value]) =>
          `${JSON.stringify(value)} is not a valid value of topology key ${JSON.stringify(key)} or of a label`,
      ),
    ...keys
      .filter((_, index) => lower.indexOf(lower[index] ?? '') !== index)
      .map((key) => `the topology key ${JSON.stringify(key)} is there twice, in different case`),
  ];
}

/** More than one prefix, which the specification does not allow and Kubernetes does not mind. */
export function prefixes(segments: StringMap): string[] {
  const all = Object.keys(segments).filter((key) => key.includes('/'));
  return [...new Set(all.map((key) => key.split('/')[0] ?? ''))];
}

/** Whether a node with these labels is in the segments. */
export function covers(segments: StringMap, node: StringMap): boolean {
  return Object.entries(segments).every(([key, value]) => node[key] === value);
}

function isKey(key: string): boolean {
  const parts = key.split('/');
  if (parts.length === 1) return name.test(key);
  return parts.length === 2 && prefix.test(parts[0] ?? '') && name.test(parts[1] ?? '');
}
