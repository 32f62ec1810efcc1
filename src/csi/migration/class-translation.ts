/** The parts of a class that several in-tree plugins shared (Kubernetes, "Storage Classes", "Allowed Topologies"). */
import type { StorageClass, TopologySelectorTerm } from '../../provision/objects.ts';
import { fsTypeKey } from '../create/class-parameters.ts';

/** Labels of nodes that plugins took for a zone: today's, and the one before it. */
const zoneLabels = new Set(['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone']);

/** The parameters that replace one of the class. Keys come in lower case. */
export type ParameterRule = (value: string, key: string) => Record<string, string>;

/** The filesystem type goes to the sidecars, not to the driver. */
export const fsTypeRule: ParameterRule = (value) => ({ [fsTypeKey]: value });

/**
 * The parameters after the rules; what no rule names is kept as it is. Where two keys end as one, such as two spellings
 * of `fstype`, the later key in byte order wins: the API server keeps them in that order.
 */
export function translateParameters(
  parameters: Record<string, string> = {},
  rules: ReadonlyMap<string, ParameterRule>,
): Record<string, string> {
  const translated = Object.entries(parameters).flatMap(([key, value]) => {
    const rule = rules.get(key.toLowerCase());
    return Object.entries(rule === undefined ? { [key]: value } : rule(value, key));
  });
  return Object.fromEntries(translated);
}

/** The class with its parameters translated. */
export function withParameters(storageClass: StorageClass, rules: ReadonlyMap<string, ParameterRule>): StorageClass {
  return { ...storageClass, parameters: translateParameters(storageClass.parameters, rules) };
}

/**
 * The class with its zones, named by parameters or by allowed topologies, as the driver's allowed topologies.
 *
 * @throws {Error} when they are named in both ways.
 */
export function withZones(storageClass: StorageClass, zoneKey: string): StorageClass {
  return withZoneKey(withZoneParameters(storageClass, zoneKey), zoneKey);
}

/** Parameters that name zones, in lower case, and how they are read. */
const zoneParameters = new Map<string, (value: string) => string[]>([
  ['zone', (zone) => [zone]],
  ['zones', (zones) => zones.split(',')],
]);

/**
 * The class with the zones of its parameters `zone` and `zones` (separated by commas, not trimmed) as allowed topologies.
 * Of both the later in byte order counts.
 *
 * @throws {Error} when the class has allowed topologies besides.
 */
function withZoneParameters(storageClass: StorageClass, zoneKey: string): StorageClass {
  const parameters = Object.entries(storageClass.parameters ?? {});
  const named = parameters.flatMap(([key, value]) => {
    const zones = zoneParameters.get(key.toLowerCase())?.(value);
    return zones === undefined ? [] : [zones];
  });
  const values = named.at(-1);
  if (values === undefined) return storageClass;
  if ((storageClass.allowedTopologies ?? []).length > 0) {
    throw new Error('cannot simultaneously set allowed topologies and zone/zones parameters');
  }
  return {
    ...storageClass,
    parameters: Object.fromEntries(parameters.filter(([key]) => !zoneParameters.has(key.toLowerCase()))),
    allowedTopologies: [{ matchLabelExpressions: [{ key: zoneKey, values }] }],
  };
}

/** The class with the driver's name for zones in its allowed topologies; all other keys stay. */
export function withZoneKey({ allowedTopologies, ...storageClass }: StorageClass, zoneKey: string): StorageClass {
  if (allowedTopologies === undefined) return storageClass;
  return {
    ...storageClass,
    allowedTopologies: allowedTopologies.map((term) =>
      mapExpressions(term, ({ key, values }) => ({ key: zoneLabels.has(key) ? zoneKey : key, values })),
    ),
  };
}

type Expression = NonNullable<TopologySelectorTerm['matchLabelExpressions']>[number];

/** A term with each of its expressions replaced. */
export function mapExpressions(
  { matchLabelExpressions = [] }: TopologySelectorTerm,
  replace: (expression: Expression) => Expression,
): TopologySelectorTerm {
  return { matchLabelExpressions: matchLabelExpressions.map(replace) };
}
