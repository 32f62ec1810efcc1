/** The topologies of the nodes that the driver is registered on. */
import { compareBytes } from '../../base/compare-bytes.ts';
import { inSlices } from '../../base/event-loop.ts';
import { goQuote } from '../../base/go-quote.ts';
import { shortValue } from '../../base/short-value.ts';
import { type TopologyNode, type TopologyNodes, topologyKeysOf } from './topology-nodes.ts';
import { isLabelName, keysText, sortedTerms, termOf, type TopologyTerm } from './topology-term.ts';

/** Nodes on which the driver is registered with the same topology keys. */
interface KeySet {
  /** Sorted; a repeated one is kept. */
  keys: readonly string[];
  /** Without those whose Node is not in the cache. */
  nodes: TopologyNode[];
}

/** Terms of nodes whose own CSINode registers the driver with the keys: labels alone do not count. */
export class ClusterTerms {
  readonly #nodes: TopologyNodes;
  readonly #driverName: string;
  /** Results by topology keys, the empty text for all key sets; dropped when labels or keys of a node have changed. */
  readonly #remembered = new Map<string, Promise<readonly TopologyTerm[]>>();
  #changes: number | undefined;

  constructor(nodes: TopologyNodes, driverName: string) {
    this.#nodes = nodes;
    this.#driverName = driverName;
  }

  /**
   * Sorted terms of the nodes on which the driver has all these keys, each once.
   *
   * @throws {Error} when there is none.
   */
  withKeys(keys: readonly string[]): Promise<readonly TopologyTerm[]> {
    return this.#remember(keys.join('\0'), async (keySets) => found(await termsFor([keys], keySets), keysText(keys)));
  }

  /**
   * Sorted terms for every set of keys that the driver has on some node, each once; empty when it has no keys on any node.
   *
   * @throws {Error} when it has keys, and no node has a term for them.
   */
  ofAllKeySets(): Promise<readonly TopologyTerm[]> {
    return this.#remember('', async (keySets) => {
      if (keySets.length === 0) return [];
      const keys = keySets.map((keySet) => keySet.keys);
      return found(await termsFor(keys, keySets), keysText(keys.map(keysText)));
    });
  }

  #remember(
    name: string,
    compute: (keySets: readonly KeySet[]) => Promise<readonly TopologyTerm[]>,
  ): Promise<readonly TopologyTerm[]> {
    const changes = this.#nodes.changes?.();
    if (changes === undefined || changes !== this.#changes) this.#remembered.clear();
    this.#changes = changes;
    const terms = this.#remembered.get(name) ?? this.#keySets().then(compute);
    this.#remembered.set(name, terms);
    return terms;
  }

  async #keySets(): Promise<KeySet[]> {
    const { nodes, csiNodes } = this.#nodes;
    const keySets = new Map<string, KeySet>();
    await inSlices(csiNodes.list(), (csiNode) => {
      const keys = topologyKeysOf(csiNode, this.#driverName) ?? [];
      if (keys.length === 0) return;
      const sorted = keys.toSorted(compareBytes);
      const name = sorted.join('\0');
      const keySet = keySets.get(name) ?? { keys: sorted, nodes: [] };
      keySets.set(name, keySet);
      const node = nodes.get(csiNode.metadata.name);
      if (node !== undefined) keySet.nodes.push(node);
    });
    return [...keySets.values()].sort((a, b) => compareKeys(a.keys, b.keys));
  }
}

/** The terms, sorted, of each list of keys: those of the nodes on which the driver has at least these keys. */
async function termsFor(lists: readonly (readonly string[])[], keySets: readonly KeySet[]): Promise<TopologyTerm[]> {
  const terms = new Map<string, TopologyTerm>();
  for (const keys of lists) {
    const unfit = keys.find((key) => !isLabelName(key));
    if (unfit !== undefined) {
      throw new Error(
        `error parsing topology keys selector: key: Invalid value: ${goQuote(shortValue(unfit))}: not the name of a label`,
      );
    }
    const named = `${keys.join('\0')}\0`;
    for (const { nodes } of keySets.filter((set) => keys.every((key) => set.keys.includes(key)))) {
      await inSlices(nodes, ({ metadata: { labels } }) => {
        // A term for each node would take most of the time: thousands of nodes are in a few topologies.
        const text = named + keys.map((key) => labels?.[key]).join('\0');
        if (terms.has(text)) return;
        const term = termOf(labels, keys);
        if (term !== undefined) terms.set(text, term);
      });
    }
  }
  return sortedTerms([...terms.values()]);
}

function found(terms: readonly TopologyTerm[], keys: string): readonly TopologyTerm[] {
  if (terms.length === 0) throw new Error(`topologyKeys ${keys} were not found on any nodes`);
  return terms;
}

/** Key by key, the shorter list first. */
function compareKeys(a: readonly string[], b: readonly string[]): number {
  for (const [index, key] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const order = compareBytes(key, other);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}
