/** Where CreateVolume may put a volume (CSI spec, `TopologyRequirement`; Kubernetes CSI page "CSI Topology Feature"). */
import { goQuote } from '../../base/go-quote.ts';
import type { Logger } from '../../base/logger.ts';
import { shortValue } from '../../base/short-value.ts';
import { firstTopology } from './claim-spread.ts';
import { ClusterTerms } from './cluster-terms.ts';
import type { TopologyRequirement } from '../generated/csi/v1/TopologyRequirement.ts';
import { SelectedNodeGoneError, type TopologyHook, type TopologyQuestion } from './topology-hook.ts';
import { topologyKeysOf, type TopologyNodes } from './topology-nodes.ts';
import {
  allowedTerms,
  isWithin,
  keysText,
  labelsText,
  termsText,
  termText,
  rotated,
  sortedTerms,
  termOf,
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
