/** Topology: which segments the driver serves and where a new volume goes (CSI spec, "CreateVolume"). */
import { CallError } from './call-error.ts';
import type { StringMap, Topology, TopologyRequirement } from './messages.ts';

/** By topology key, the values this driver serves; the first one is this node's. Empty: a driver without topology. */
export type ServedTopology = ReadonlyMap<string, readonly string[]>;

/** The segments of this node, and of a volume nobody placed. */
export function ownSegments(served: ServedTopology): StringMap {
  return completed(served, {});
}

/** Whether every segment asked for is one the driver serves. */
function serves(served: ServedTopology, asked: StringMap): boolean {
  return Object.entries(asked).every(([key, value]) => served.get(key)?.includes(value) === true);
}

/** Whether a volume in `segments` can be reached from `asked`. */
function reachableFrom(segments: StringMap, asked: StringMap): boolean {
  return Object.entries(asked).every(([key, value]) => segments[key] === value);
}

/** Whether a volume in `segments` fulfils the requirement. */
export function fulfils(segments: StringMap, requirement: TopologyRequirement | null | undefined): boolean {
  const terms = (requirement?.requisite?.length ?? 0) > 0 ? requirement?.requisite : requirement?.preferred;
  return (
    terms === undefined || terms.length === 0 || terms.some((term) => reachableFrom(segments, term.segments ?? {}))
  );
}

/**
 * The places where a new volume may go, the best first: the preferred terms, then the other requisite ones.
 *
 * @returns undefined for a driver without topology.
 * @throws {CallError} `RESOURCE_EXHAUSTED` when the driver serves none of the terms.
 */
export function placesFor(
  served: ServedTopology,
  requirement: TopologyRequirement | null | undefined,
): StringMap[] | undefined {
  if (served.size === 0) return undefined;
  const terms = [...(requirement?.preferred ?? []), ...(requirement?.requisite ?? [])];
  if (terms.length === 0) return [ownSegments(served)];
  const places = terms
    .map((term) => term.segments ?? {})
    .filter((segments) => serves(served, segments))
    .map((segments) => completed(served, segments));
  if (places.length > 0) return places;
  const asked = terms.map((term) => JSON.stringify(term.segments ?? {})).join(', ');
  throw new CallError('RESOURCE_EXHAUSTED', `no volume can be made in any of the requested segments: ${asked}`);
}

/** Every combination of served values that `asked` admits; `[undefined]` for a driver without topology. */
export function segmentsWithin(served: ServedTopology, asked: StringMap): (StringMap | undefined)[] {
  if (!serves(served, asked)) return [];
  if (served.size === 0) return [undefined];
  let combinations: StringMap[] = [{}];
  for (const [key, values] of served) {
    combinations = combinations.flatMap((segments) => values.map((value) => ({ ...segments, [key]: value })));
  }
  return combinations.filter((segments) => reachableFrom(segments, asked));
}

/** The response's form: absent for a driver without topology. */
export function accessibleTopology(segments: StringMap | undefined): { accessible_topology?: Topology[] } {
  return segments === undefined ? {} : { accessible_topology: [{ segments }] };
}

/** Keys that a term leaves open get this node's value. */
function completed(served: ServedTopology, segments: StringMap): StringMap {
  return Object.fromEntries([...served].map(([key, values]) => [key, segments[key] ?? values[0] ?? '']));
}
