/** Terms: where a volume is, or may be, as a list of labels that must all hold; in error texts the way Go prints them. */
import { compareBytes } from '../../base/compare-bytes.ts';
import { shortValue } from '../../base/short-value.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, TopologySelectorTerm } from '../../provision/objects.ts';
import type { Topology } from '../generated/csi/v1/Topology.ts';

const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const prefixPart = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** One label of a term. */
interface TopologyPair {
  readonly key: string;
  readonly value: string;
}

/** A term: its pairs sorted by key, then value. */
export type TopologyTerm = readonly TopologyPair[];

type Labels = Readonly<Record<string, string>>;

/** Whether a node can have a label of this name (Kubernetes page "Labels and Selectors", "Syntax and character set"). */
export function isLabelName(text: string): boolean {
  const [name = '', prefix, ...more] = text.split('/').reverse();
  if (more.length > 0 || !namePart.test(name)) return false;
  return prefix === undefined || (prefix.length <= 253 && prefixPart.test(prefix));
}

/** The term of these labels for the keys; undefined when a key is missing. An empty value counts as present. */
export function termOf(labels: Labels | undefined, keys: readonly string[]): TopologyTerm | undefined {
  const pairs: TopologyPair[] = [];
  for (const key of keys) {
    if (labels === undefined || !Object.hasOwn(labels, key)) return undefined;
    pairs.push({ key, value: labels[key] ?? '' });
  }
  return pairs.sort(comparePairs);
}

/**
 * The topologies that a class allows, one term for each combination of values (Kubernetes page "Storage Classes",
 * "Allowed topologies"). An expression without values also drops the expressions before it, as in the original; the API server
 * admits none.
 */
export function allowedTerms(allowedTopologies: readonly TopologySelectorTerm[]): TopologyTerm[] {
  return allowedTopologies.flatMap(({ matchLabelExpressions }) => {
    let combined: TopologyTerm[] = [];
    for (const { key, values } of matchLabelExpressions ?? []) {
      const before = combined.length === 0 ? [[]] : combined;
      combined = values.flatMap((value) => before.map((pairs) => [...pairs, { key, value }]));
    }
    return combined.map((pairs) => pairs.toSorted(comparePairs));
  });
}

/** The terms in order, shorter ones first, each of them once; one that another contains stays. */
export function sortedTerms(terms: readonly TopologyTerm[]): TopologyTerm[] {
  const sorted = terms.toSorted(compareTerms);
  return sorted.filter((term, index) => index === 0 || compareTerms(term, sorted[index - 1] ?? []) !== 0);
}

/** Whether every pair of the term is one of the other's; the empty term is within every one. */
export function isWithin(term: TopologyTerm, other: TopologyTerm): boolean {
  return term.every(({ key, value }) => other.some((pair) => pair.key === key && pair.value === value));
}

/** The list rotated to begin at that index. */
export function rotated<T>(list: readonly T[], start: number): T[] {
  return [...list.slice(start), ...list.slice(0, start)];
}

/** The terms as messages; empty ones are left out. Of two values of one key the last counts. */
export function topologies(terms: readonly TopologyTerm[]): Topology[] {
  return terms
    .filter((term) => term.length > 0)
    .map((term) => ({ segments: Object.fromEntries(term.map(({ key, value }) => [key, value])) }));
}

/** For `sort`: fewer pairs first, else pair by pair. */
export function compareTerms(a: TopologyTerm, b: TopologyTerm): number {
  if (a.length !== b.length) return a.length - b.length;
  for (const [index, pair] of a.entries()) {
    const order = comparePairs(pair, b[index] ?? pair);
    if (order !== 0) return order;
  }
  return 0;
}

function comparePairs(a: TopologyPair, b: TopologyPair): number {
  return compareBytes(a.key, b.key) || compareBytes(a.value, b.value);
}

/** The keys, as in `[zone rack]`. */
export function keysText(keys: readonly string[]): string {
  return `[${keys.join(' ')}]`;
}

/** Labels, sorted by key, as in `map[rack:r zone:z]`. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => compareBytes(a, b));
  return `map[${sorted.map(([key, value]) => `${key}:${value}`).join(' ')}]`;
}

/** A term, as in `[{rack r} {zone z}]`. */
export function termText(term: TopologyTerm): string {
  return `[${term.map(({ key, value }) => `{${key} ${value}}`).join(' ')}]`;
}

/** Terms, as in `[[{zone a}] [{zone b}]]`. */
export function termsText(terms: readonly TopologyTerm[]): string {
  return `[${terms.map(termText).join(' ')}]`;
}

/**
 * Whether a node with these labels is among those selected: of the terms one must fit, of a term's conditions all. The
 * node's name is not known here, so conditions on fields exclude nobody. A term without any condition fits no node.
 *
 * @throws {Error} when no term fits and one of them cannot be read.
 * @see Kubernetes API reference, `NodeSelector`.
 */
export function selectsNode(terms: readonly NodeSelectorTerm[], labels: Readonly<Record<string, string>>): boolean {
  let unreadable: unknown;
  for (const [index, { matchExpressions = [], matchFields = [] }] of terms.entries()) {
    if (matchExpressions.length === 0 && matchFields.length === 0) continue;
    try {
      const tests = matchExpressions.map((expression, position) =>
        conditionOf(expression, `nodeSelectorTerms[${index}].matchExpressions[${position}]`),
      );
      if (tests.every((test) => test(labels))) return true;
    } catch (error) {
      unreadable ??= error;
    }
  }
  if (unreadable !== undefined) throw unreadable as Error;
  return false;
}

type Condition = (labels: Readonly<Record<string, string>>) => boolean;

/** A missing label matches `NotIn` and `DoesNotExist`. */
function conditionOf({ key, operator, values = [] }: NodeSelectorRequirement, where: string): Condition {
  switch (operator) {
    case 'In':
      return (labels) => labels[key] !== undefined && values.includes(labels[key]);
    case 'NotIn':
      return (labels) => labels[key] === undefined || !values.includes(labels[key]);
    case 'Exists':
      return (labels) => labels[key] !== undefined;
    case 'DoesNotExist':
      return (labels) => labels[key] === undefined;
    case 'Gt':
    case 'Lt': {
      const bound = /^[^+-]/.test(values[0] ?? '') ? integer(values[0]) : undefined; // with a sign it is no value of a label
      if (values.length !== 1 || bound === undefined) {
        throw new Error(`${where}.values: Invalid value: for ${operator} it must be one integer`);
      }
      return (labels) => {
        const value = integer(labels[key]);
        return value !== undefined && (operator === 'Gt' ? value > bound : value < bound);
      };
    }
    default:
      throw new Error(
        `${where}.operator: Unsupported value: ${JSON.stringify(shortValue(operator))}: supported values: ` +
          '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
      );
  }
}

/** Of 64 bits, as for the scheduler. */
function integer(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ''));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
