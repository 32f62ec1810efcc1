/** Accessibility requirements as a plan has them: each topology once, in a list that many plans share. */
import type { Topology } from '../generated/csi/v1/Topology.ts';
import type { TopologyRequirement } from '../generated/csi/v1/TopologyRequirement.ts';
import { rotated } from './topology-term.ts';

/** The requisite topologies; preferred are the same, beginning with the one at the index `first`. */
export interface PlannedTopology {
  requisite: Topology[];
  first: number;
}

/** @throws {Error} when the preferred topologies are not the requisite ones, rotated. */
export function plannedTopology({ requisite, preferred }: TopologyRequirement): PlannedTopology {
  const all = requisite ?? [];
  const wanted = preferred ?? [];
  for (let first = 0; first < Math.max(all.length, 1); first += 1) {
    if (sameTopologies(wanted, all, first)) return { requisite: all, first };
  }
  throw new Error('the preferred topologies are not the requisite ones in their order');
}

/** The requirements that were planned, as CreateVolume is sent them. */
export function topologyRequirement({ requisite, first }: PlannedTopology): TopologyRequirement {
  return { requisite, preferred: rotated(requisite, first) };
}

/** Shorter lists are not worth sharing, and must not displace a long one. */
const sharedLength = 8;

/** Keeps the list of the latest plan, so that plans share one while the nodes do not change: it may have thousands of entries. */
export class SharedRequisite {
  #latest: Topology[] = [];

  share(planned: PlannedTopology): PlannedTopology {
    if (planned.requisite.length < sharedLength) return planned;
    if (!sameTopologies(planned.requisite, this.#latest)) this.#latest = planned.requisite;
    return { ...planned, requisite: this.#latest };
  }
}

/** Whether the lists are the same when the second is read from an index on, and then from its beginning. */
function sameTopologies(a: readonly Topology[], b: readonly Topology[], first = 0): boolean {
  return (
    a.length === b.length && a.every((topology, index) => sameSegments(topology, b[(first + index) % b.length] ?? {}))
  );
}

function sameSegments({ segments: a = {} }: Topology, { segments: b = {} }: Topology): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
