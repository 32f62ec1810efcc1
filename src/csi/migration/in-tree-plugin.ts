import type {
  CsiVolumeSource,
  InTreeSourceField,
  PersistentVolume,
  StorageClass,
  TopologySelectorTerm,
} from '../../provision/objects.ts';
import { fsTypeKey } from '../class-parameters.ts';

/** A volume source as an in-tree plugin keeps it, and what else it keeps on the volume. */
export interface InTreeSource {
  source: object;
  annotations?: Record<string, string>;
}

/** A volume plugin that was once part of Kubernetes, and how its objects read for the CSI driver that replaced it. */
export interface InTreePlugin {
  /** As classes and annotations name it, such as `kubernetes.io/aws-ebs`. */
  readonly name: string;
  readonly driverName: string;
  /** Where a volume's `spec` holds its source, such as `awsElasticBlockStore`. */
  readonly sourceField: InTreeSourceField;
  /** A copy of a class of the plugin, for the driver. @throws {Error} when the class contradicts itself. */
  translateClass(storageClass: StorageClass): StorageClass;
  /** The source for a volume of the driver. @throws {Error} when it cannot be expressed. */
  inTreeSource(csi: CsiVolumeSource): InTreeSource;
  /** What the driver calls a volume of the plugin. @throws {Error} when the source names no volume. */
  csiSource(source: object, volume: PersistentVolume): Omit<CsiVolumeSource, 'driver'>;
  /** What a source and its handle have in common, where the handle says more. Absent: the source, translated, has the handle. */
  readonly storageKey?: StorageKey;
  /** Absent: the node affinity reads the same for both. */
  readonly topology?: VolumeTopology;
}

/** Source and handle are of the same storage when both keys are the same. */
interface StorageKey {
  /** @throws {Error} when the source names no volume. */
  ofSource(source: object): string;
  ofHandle(handle: string): string;
}

/** Translates node affinity between plugin and driver. Neither function changes its argument. */
export interface VolumeTopology {
  /** @throws {Error} when the region of a zone is not known. */
  toInTree(volume: PersistentVolume): PersistentVolume;
  toCsi(volume: PersistentVolume): PersistentVolume;
}

/** File system type and read-only flag, as all sources hold them; defaults are left out. */
export function mountFields({ fsType, readOnly }: { fsType?: string | undefined; readOnly?: boolean | undefined }): {
  fsType?: string;
  readOnly?: true;
} {
  return {
    ...(fsType !== undefined && fsType !== '' && { fsType }),
    ...(readOnly === true && { readOnly }),
  };
}

/** core/v1 CinderPersistentVolumeSource and PortworxVolumeSource. */
interface HandleSource {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
}

/** For plugins whose source names the volume as its driver does, and nothing else. */
export const handleSource: Pick<InTreePlugin, 'inTreeSource' | 'csiSource'> = {
  inTreeSource({ volumeHandle, ...mount }) {
    const source: HandleSource = { volumeID: volumeHandle, ...mountFields(mount) };
    return { source };
  },

  csiSource({ volumeID, ...mount }: HandleSource) {
    return { volumeHandle: volumeID, ...mountFields(mount), volumeAttributes: {} };
  },
};

/** Name of the volume attribute that keeps which partition of a disk was mounted. */
export const partitionKey = 'partition';

/** Fields of sources hold 32 bits. */
const [lowest, highest] = [-(2 ** 31), 2 ** 31 - 1];

/**
 * The partition of a disk as a volume attribute has it.
 *
 * @returns nothing for a whole disk, which in-tree sources say by 0 or by silence.
 * @throws {Error} for what is no whole number of 32 bits.
 */
export function partitionOf(text: string): number | undefined {
  const partition = /^[+-]?\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(partition)) throw new Error(`failed to convert partition "${text}" to a whole number`);
  if (partition < lowest || partition > highest) {
    throw new Error(`failed to convert partition "${text}" to a whole number: it has more than 32 bits`);
  }
  return partition === 0 ? undefined : partition;
}

/** Volume attributes with keys in lower case, for drivers that take them in any. Of several spellings the last counts. */
export function attributesInLowerCase(attributes: Record<string, string> = {}): ReadonlyMap<string, string> {
  return new Map(Object.entries(attributes).map(([key, value]) => [key.toLowerCase(), value]));
}

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
