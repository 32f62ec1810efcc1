import { compareTerms, type TopologyTerm } from './topology-term.ts';

/** The input of the first attempt for a claim; each part is present once it was needed. */
export interface RememberedTopology {
  /** Topology keys of the selected node, or of the one that was chosen at random. */
  readonly keys?: readonly string[];
  /** All labels of the selected node. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The topologies of the cluster's nodes. */
  readonly terms?: readonly TopologyTerm[];
}

const nothing: RememberedTopology = Object.freeze({});

/**
 * The topology input that retries of a claim must reuse, though nodes change meanwhile: a CreateVolume that may still be
 * running has to be repeated with equal arguments. Entries live until the outcome is known or the claim is settled.
 */
export class TopologyMemory {
  readonly #claims = new Map<string, RememberedTopology>();
  /** Claims share one list while the nodes do not change. */
  #latestTerms: readonly TopologyTerm[] = [];

  /** Claims that something is remembered of. */
  get size(): number {
    return this.#claims.size;
  }

  of(claimUid: string): RememberedTopology {
    return this.#claims.get(claimUid) ?? nothing;
  }

  /** Adds parts, or replaces those that the entry has. The parts belong to the memory from now on. */
  remember(claimUid: string, parts: RememberedTopology): void {
    const known = this.of(claimUid);
    const terms = parts.terms === undefined ? undefined : this.#shared(parts.terms);
    this.#claims.set(claimUid, { ...known, ...parts, ...(terms && { terms }) });
  }

  /** Safe to repeat. */
  forget(claimUid: string): void {
    this.#claims.delete(claimUid);
  }

  #shared(terms: readonly TopologyTerm[]): readonly TopologyTerm[] {
    const latest = this.#latestTerms;
    const same = terms.length === latest.length && terms.every((term, i) => compareTerms(term, latest[i] ?? []) === 0);
    if (!same) this.#latestTerms = terms;
    return this.#latestTerms;
  }
}
