/** Topology in error texts, which users of the original look for: the way Go prints lists, maps and structs. */
import { compareBytes } from '../../base/compare-bytes.ts';
import type { TopologyTerm } from './topology-term.ts';

/** `[zone rack]` */
export function keysText(keys: readonly string[]): string {
  return `[${keys.join(' ')}]`;
}

/** `map[rack:r zone:z]`, sorted by key. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => compareBytes(a, b));
  return `map[${sorted.map(([key, value]) => `${key}:${value}`).join(' ')}]`;
}

/** `[{rack r} {zone z}]` */
export function termText(term: TopologyTerm): string {
  return `[${term.map(({ key, value }) => `{${key} ${value}}`).join(' ')}]`;
}

/** `[[{zone a}] [{zone b}]]` */
export function termsText(terms: readonly TopologyTerm[]): string {
  return `[${terms.map(termText).join(' ')}]`;
}
