/** Where CreateVolume may put a volume (CSI spec, `TopologyRequirement`; Kubernetes CSI page "CSI Topology Feature"). */
import { compareBytes } from '../../base/compare-bytes.ts';
import { inSlices } from '../../base/event-loop.ts';
import { goQuote } from '../../base/go-quote.ts';
import type { Logger } from '../../base/logger.ts';
import { shortValue } from '../../base/short-value.ts';
import type { TopologyRequirement } from '../generated/csi/v1/TopologyRequirement.ts';
import { SelectedNodeGoneError, type TopologyHook, type TopologyQuestion } from './planned-topology.ts';
import { topologyKeysOf, type TopologyNode, type TopologyNodes } from './topology-nodes.ts';
import {
  allowedTerms,
  isLabelName,
  isWithin,
  keysText,
  labelsText,
  rotated,
  sortedTerms,
  termOf,
  termsText,
  termText,
  topologies,
  type TopologyTerm,
} from './topology-term.ts';

export interface TopologyOptions {
  driverName: string;
  /** Synced before the first call. */
  nodes: TopologyNodes;
  /** `--strict-topology`: with a selected node that node's term alone. */
  strict: boolean;
  /** `--immediate-topology`: without a selected node the topologies of the whole cluster, else none. */
  immediate: boolean;
  logger: Logger;
}

/** The node that the scheduler chose: the driver's topology keys on it, and its topology. */
interface SelectedNode {
  name: string;
  keys: readonly string[];
  term: TopologyTerm;
}

/**
 * Computes accessibility requirements from the class, the scheduler's choice, and the nodes as they are now. Nothing of a
 * claim is kept: a request that was sent is repeated from its plan.
 */
export class Topology implements TopologyHook {
  readonly #options: TopologyOptions;
  readonly #cluster: ClusterTerms;

  constructor(options: TopologyOptions) {
    this.#options = options;
    this.#cluster = new ClusterTerms(options.nodes, options.driverName);
  }

  /**
   * The requisite terms in order, and the same as preferred with the best one first; undefined where the driver may
   * choose freely.
   *
   * @throws {SelectedNodeGoneError} when the selected node has no CSINode, or there is no such Node.
   * @throws {Error} when none can be determined; the texts are those of the original.
   */
  async requirements(question: TopologyQuestion): Promise<TopologyRequirement | undefined> {
    const { claimName, allowedTopologies, selectedNodeName } = question;
    const { strict, immediate } = this.#options;
    const selected = selectedNodeName === '' ? undefined : this.#selectedNode(selectedNodeName);
    const restricted = allowedTopologies !== undefined && allowedTopologies.length > 0;
    const allowed = restricted ? allowedTerms(allowedTopologies) : [];
    if (selected !== undefined && strict) {
      if (restricted) checkAllowed(selected, allowed);
      return requirement([selected.term], 0);
    }
    if (selected === undefined && !restricted && !immediate) return undefined;
    const requisite = restricted ? sortedTerms(allowed) : await this.#clusterTerms(selected?.keys);
    if (requisite.length === 0) return undefined;
    const first =
      selected === undefined ? firstTopology(claimName, requisite.length) : indexOfSelected(selected, requisite);
    return requirement(requisite, first);
  }

  labelsOf(nodeName: string): Readonly<Record<string, string>> | undefined {
    const node = this.#options.nodes.nodes.get(nodeName);
    return node && (node.metadata.labels ?? {});
  }

  #selectedNode(name: string): SelectedNode {
    const keys = this.#keysOfSelected(name);
    if (keys.length === 0) throw new Error(`no topology key found for node ${shortValue(name)}`);
    return { name, keys, term: this.#termOfSelected(name, keys) };
  }

  #keysOfSelected(name: string): readonly string[] {
    const { nodes, driverName } = this.#options;
    const csiNode = nodes.csiNodes.get(name);
    if (csiNode === undefined) {
      throw new SelectedNodeGoneError(
        `failed to get selected CSINode ${shortValue(name)}: csinode.storage.k8s.io ${goQuote(shortValue(name))} not found`,
      );
    }
    return topologyKeysOf(csiNode, driverName) ?? [];
  }

  #termOfSelected(name: string, keys: readonly string[]): TopologyTerm {
    const node = this.#options.nodes.nodes.get(name);
    if (node === undefined) {
      throw new SelectedNodeGoneError(
        `failed to get selected Node ${shortValue(name)}: node ${goQuote(shortValue(name))} not found`,
      );
    }
    const labels = node.metadata.labels ?? {};
    const term = termOf(labels, keys);
    if (term !== undefined) return term;
    throw new Error(
      `topology labels from selected node ${labelsText(labels)} does not match topology keys from CSINode ${keysText(keys)}`,
    );
  }

  /** Every topology of the cluster; without a selected node for all sets of keys that the driver has on nodes. */
  async #clusterTerms(keysOfSelected: readonly string[] | undefined): Promise<readonly TopologyTerm[]> {
    if (keysOfSelected !== undefined) return this.#cluster.withKeys(keysOfSelected);
    const terms = await this.#cluster.ofAllKeySets();
    if (terms.length > 0) return terms;
    const { logger, driverName } = this.#options;
    logger.warn({ driver: driverName }, 'No topology keys found on any node');
    throw new Error('no available topology found');
  }
}

function requirement(requisite: readonly TopologyTerm[], first: number): TopologyRequirement {
  return { requisite: topologies(requisite), preferred: topologies(rotated(requisite, first)) };
}

function checkAllowed({ name, term }: SelectedNode, allowed: readonly TopologyTerm[]): void {
  if (allowed.some((each) => isWithin(each, term))) return;
  throw new Error(
    `selected node '${goQuote(shortValue(name))}' topology '${termText(term)}' is not in allowed topologies: ${termsText(allowed)}`,
  );
}

function indexOfSelected({ name, term }: SelectedNode, requisite: readonly TopologyTerm[]): number {
  const index = requisite.findIndex((each) => isWithin(each, term));
  if (index >= 0) return index;
  throw new Error(
    `topology ${termText(term)} from selected node ${goQuote(shortValue(name))} is not in requisite: ${termsText(requisite)}`,
  );
}

/** Nodes on which the driver is registered with the same topology keys. */
interface KeySet {
  /** Sorted; a repeated one is kept. */
  keys: readonly string[];
  /** Without those whose Node is not in the cache. */
  nodes: TopologyNode[];
}

/** Terms of nodes whose own CSINode registers the driver with the keys: labels alone do not count. */
class ClusterTerms {
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

const uint32 = 2 ** 32;

/**
 * Which of the topologies is preferred for a claim's volume when no node was selected. The claims of a StatefulSet,
 * `<template>-<set>-<ordinal>`, take one after the other, and all claims of one replica get the same one.
 *
 * @param claimName - as of the API: not empty.
 * @returns an index from 0 to `count - 1`, always the same for a name.
 */
export function firstTopology(claimName: string, count: number): number {
  const { text, index } = hashInput(claimName);
  return ((fnv1(text) + index) % uint32) % count;
}

/** What of a claim's name is hashed, and the ordinal to add. */
export function hashInput(claimName: string): { text: string; index: number } {
  const [, before = '', digits] = /^(.*)-([0-9]+)$/s.exec(claimName) ?? [];
  const index = Number(digits);
  if (digits === undefined || index >= uint32) return { text: claimName, index: 0 };
  return { text: before.slice(before.lastIndexOf('-') + 1), index };
}

/** FNV-1 with 32 bits over the UTF-8 form: multiplies first, then takes the byte in (draft-eastlake-fnv, "FNV-1"). */
export function fnv1(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash, 0x01000193) ^ byte;
  return hash >>> 0;
}
