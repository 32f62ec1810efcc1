/** Which segments a driver may answer with (CSI spec, "CreateVolume", message `Topology`). */
import { labelValueProblem, qualifiedNameProblem } from '../api/names.ts';
import type { StringMap } from './csi-messages.ts';

/** What is wrong with segments, in words. */
export function segmentMistakes(segments: StringMap): string[] {
  const keys = Object.keys(segments);
  const lower = keys.map((key) => key.toLowerCase());
  return [
    ...keys
      .filter((key) => qualifiedNameProblem(key) !== '')
      .map((key) => `${JSON.stringify(key)} is not a valid topology key or label key`),
    ...Object.entries(segments)
      .filter(([, value]) => value === '' || labelValueProblem(value) !== '')
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
