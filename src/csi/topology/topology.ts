/** Where CreateVolume may put a volume (CSI spec, `TopologyRequirement`; Kubernetes CSI page "CSI Topology Feature"). */
import { goQuote } from '../../base/go-quote.ts';
import type { Logger } from '../../base/logger.ts';
import { firstTopology } from './claim-spread.ts';
import type { TopologyRequirement } from '../generated/csi/v1/TopologyRequirement.ts';
import { isLabelName } from './label-name.ts';
import { SelectedNodeGoneError, type TopologyHook, type TopologyQuestion } from './topology-hook.ts';
import { TopologyMemory } from './topology-memory.ts';
import { topologyKeysOf, type TopologyNodes } from './topology-nodes.ts';
import {
  allowedTerms,
  isWithin,
  termsOfNodes,
  rotated,
  sortedTerms,
  termOf,
  topologies,
  type TopologyTerm,
} from './topology-term.ts';
import { keysText, labelsText, termsText, termText } from './topology-text.ts';

export interface TopologyOptions {
  driverName: string;
  /** Synced before the first call. */
  nodes: TopologyNodes;
  /** `--strict-topology`: with a selected node that node's term alone. */
  strict: boolean;
  /** `--immediate-topology`: without a selected node the topologies of the whole cluster, else none. */
  immediate: boolean;
  logger: Logger;
  /** Uniform in [0, 1): which node's keys count when none was selected. Default `Math.random`. */
  random?: () => number;
}

/** The node that the scheduler chose: the driver's topology keys on it, and its topology. */
interface SelectedNode {
  name: string;
  keys: readonly string[];
  term: TopologyTerm;
}

/**
 * Computes accessibility requirements from the class, the nodes and the scheduler's choice. What an attempt was computed
 * from is kept until `forget`, so that a repeat has the same result whatever happens to the nodes meanwhile.
 */
export class Topology implements TopologyHook {
  readonly #options: TopologyOptions;
  readonly #memory = new TopologyMemory();

  constructor(options: TopologyOptions) {
    this.#options = options;
  }

  /** Claims for whose retries something is kept. */
  get rememberedClaims(): number {
    return this.#memory.size;
  }

  forget(claimUid: string): void {
    this.#memory.forget(claimUid);
  }

  /**
   * The requisite terms in order, and the same as preferred with the best one first; undefined where the driver may
   * choose freely. A repeat gives the same.
   *
   * @throws {SelectedNodeGoneError} when the selected node has no CSINode, or there is no such Node.
   * @throws {Error} when none can be determined; the texts are those of the original.
   */
  requirements(question: TopologyQuestion): TopologyRequirement | undefined {
    const { claim, allowedTopologies, selectedNodeName, remember = true } = question;
    const { strict, immediate } = this.#options;
    const memory = remember ? this.#memory : new TopologyMemory();
    const selected = selectedNodeName === '' ? undefined : this.#selectedNode(memory, claim.uid, selectedNodeName);
    const restricted = allowedTopologies !== undefined && allowedTopologies.length > 0;
    const allowed = restricted ? allowedTerms(allowedTopologies) : [];
    if (selected !== undefined && strict) {
      if (restricted) checkAllowed(selected, allowed);
      return requirement([selected.term], 0);
    }
    if (selected === undefined && !restricted && !immediate) return undefined;
    const requisite = sortedTerms(restricted ? allowed : this.#clusterTerms(memory, claim.uid, selected?.keys));
    if (requisite.length === 0) return undefined;
    const first =
      selected === undefined ? firstTopology(claim.name, requisite.length) : indexOfSelected(selected, requisite);
    return requirement(requisite, first);
  }

  #selectedNode(memory: TopologyMemory, claimUid: string, name: string): SelectedNode {
    const keys = this.#keysOfSelected(memory, claimUid, name);
    if (keys.length === 0) throw new Error(`no topology key found for node ${name}`);
    return { name, keys, term: this.#termOfSelected(memory, claimUid, name, keys) };
  }

  #keysOfSelected(memory: TopologyMemory, claimUid: string, name: string): readonly string[] {
    const { nodes, driverName } = this.#options;
    const known = memory.of(claimUid).keys;
    if (known !== undefined) return known;
    const csiNode = nodes.csiNodes.get(name);
    if (csiNode === undefined) {
      throw new SelectedNodeGoneError(
        `failed to get selected CSINode ${name}: csinode.storage.k8s.io ${goQuote(name)} not found`,
      );
    }
    const keys = topologyKeysOf(csiNode, driverName) ?? [];
    if (keys.length > 0) memory.remember(claimUid, { keys });
    return keys;
  }

  /** Labels that are remembered count only as long as they have every key: a node may get its labels late. */
  #termOfSelected(memory: TopologyMemory, claimUid: string, name: string, keys: readonly string[]): TopologyTerm {
    const known = memory.of(claimUid).labels;
    const knownTerm = termOf(known, keys);
    if (knownTerm !== undefined) return knownTerm;
    const node = this.#options.nodes.nodes.get(name);
    if (node === undefined) {
      memory.forget(claimUid); // of another node the keys may be others
      throw new SelectedNodeGoneError(`failed to get selected Node ${name}: node ${goQuote(name)} not found`);
    }
    const labels = node.metadata.labels ?? {};
    if (Object.keys(labels).length > 0) memory.remember(claimUid, { labels });
    const term = termOf(labels, keys);
    if (term !== undefined) return term;
    throw new Error(
      `topology labels from selected node ${labelsText(labels)} does not match topology keys from CSINode ${keysText(keys)}`,
    );
  }

  /** Every topology of the cluster: nodes count by their labels alone, whether or not the driver runs there. */
  #clusterTerms(
    memory: TopologyMemory,
    claimUid: string,
    keysOfSelected: readonly string[] | undefined,
  ): readonly TopologyTerm[] {
    const keys = keysOfSelected ?? this.#keysOfAnyNode(memory, claimUid);
    if (keys.length === 0) throw new Error('no available topology found');
    const unfit = keys.find((key) => !isLabelName(key));
    if (unfit !== undefined) {
      throw new Error(
        `error parsing topology keys selector: key: Invalid value: ${goQuote(unfit)}: not the name of a label`,
      );
    }
    const known = memory.of(claimUid).terms;
    if (known !== undefined) return known;
    const terms = termsOfNodes(this.#options.nodes.nodes.list(), keys);
    if (terms.length === 0) throw new Error(`topologyKeys ${keysText(keys)} were not found on any nodes`);
    memory.remember(claimUid, { terms });
    return memory.of(claimUid).terms ?? [];
  }

  /** Where nodes have different keys, one at random decides for each claim, so that no topology stays unused. */
  #keysOfAnyNode(memory: TopologyMemory, claimUid: string): readonly string[] {
    const known = memory.of(claimUid).keys;
    if (known !== undefined) return known;
    const { nodes, driverName, random = Math.random, logger } = this.#options;
    const candidates: (readonly string[])[] = [];
    for (const csiNode of nodes.csiNodes.list()) {
      const keys = topologyKeysOf(csiNode, driverName) ?? [];
      if (keys.length > 0) candidates.push(keys);
    }
    const keys = candidates[Math.floor(random() * candidates.length)];
    if (keys === undefined) {
      logger.warn({ driver: driverName }, 'No topology keys found on any node');
      return [];
    }
    memory.remember(claimUid, { keys });
    return keys;
  }
}

function requirement(requisite: readonly TopologyTerm[], first: number): TopologyRequirement {
  return { requisite: topologies(requisite), preferred: topologies(rotated(requisite, first)) };
}

function checkAllowed({ name, term }: SelectedNode, allowed: readonly TopologyTerm[]): void {
  if (allowed.some((each) => isWithin(each, term))) return;
  throw new Error(
    `selected node '${goQuote(name)}' topology '${termText(term)}' is not in allowed topologies: ${termsText(allowed)}`,
  );
}

function indexOfSelected({ name, term }: SelectedNode, requisite: readonly TopologyTerm[]): number {
  const index = requisite.findIndex((each) => isWithin(each, term));
  if (index >= 0) return index;
  throw new Error(
    `topology ${termText(term)} from selected node ${goQuote(name)} is not in requisite: ${termsText(requisite)}`,
  );
}
