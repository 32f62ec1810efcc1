/** What a PersistentVolume says: whose it is, whether its storage is to be deleted, and which finalizers it should have. */
import type { ObjectReference } from '../kube/kube-object.ts';
import {
  inTreeSourceFields,
  migratedToKey,
  type PersistentVolume,
  provisionedByKey,
  volumeFinalizer,
} from './objects.ts';
import type { Provisioner } from './provisioner.ts';

export interface VolumeOwnership {
  isKnownProvisioner: (name: string) => boolean;
  /** As `Provisioner.ownsSource`; undefined: it owns every source. */
  ownsSource: ((volume: PersistentVolume) => boolean) | undefined;
}

/**
 * - `contradictory`: an annotation names this provisioner, but the storage is not of its backend. Either may be wrong, so the volume is
 *   left as it is.
 * - `others`: it names another provisioner, wherever its storage is, or none.
 */
export type VolumeOwner = 'ours' | 'contradictory' | 'others';

/**
 * Every decision about a volume begins here. The cache does not keep the source of a Bound volume. It was checked when the volume came
 * into the cache, which keeps one with a foreign source as a volume of others.
 */
export function ownerOf(volume: PersistentVolume, { isKnownProvisioner, ownsSource }: VolumeOwnership): VolumeOwner {
  if (!namesProvisioner(volume, isKnownProvisioner)) return 'others';
  if (volume.status?.phase === 'Bound' || ownsSource?.(volume) !== false) return 'ours';
  return namingKey(volume, isKnownProvisioner) === undefined ? 'others' : 'contradictory';
}

/** The `ownsSource` of a provisioner, as `VolumeOwnership` and `provisionInformers` take it. */
export function ownsSourceOf(provisioner: Pick<Provisioner, 'ownsSource'>): VolumeOwnership['ownsSource'] {
  if (provisioner.ownsSource === undefined) return undefined;
  return (volume) => provisioner.ownsSource?.(volume) !== false;
}

/**
 * Whether a volume names one of the known provisioners, wherever its storage is. A statically provisioned CSI volume names its driver:
 * once released, with policy Delete, its storage is deleted, too.
 */
export function namesProvisioner(volume: PersistentVolume, isKnownProvisioner: (name: string) => boolean): boolean {
  if (namingKey(volume, isKnownProvisioner) !== undefined) return true;
  const isAnnotated = volume.metadata.annotations?.[provisionedByKey] !== undefined;
  return !isAnnotated && volume.spec.csi !== undefined && isKnownProvisioner(volume.spec.csi.driver);
}

type NamingKey = typeof provisionedByKey | typeof migratedToKey;

/** The annotation by which a volume names one of the known provisioners; undefined: none does. */
function namingKey(
  { metadata: { annotations = {} }, spec }: PersistentVolume,
  isKnownProvisioner: (name: string) => boolean,
): NamingKey | undefined {
  const { [provisionedByKey]: provisionedBy, [migratedToKey]: migratedTo } = annotations;
  if (provisionedBy !== undefined && isKnownProvisioner(provisionedBy)) return provisionedByKey;
  const isStatic = provisionedBy === undefined && spec.csi !== undefined; // then only its driver counts
  return !isStatic && migratedTo !== undefined && isKnownProvisioner(migratedTo) ? migratedToKey : undefined;
}

/** Whether there would be something to do for a contradictory volume: its storage is to be deleted, or our finalizer holds it. */
export function isLeftUndone(volume: PersistentVolume, addFinalizer: boolean): boolean {
  return shouldDelete(volume, addFinalizer) || isHeld(volume);
}

function isHeld({ metadata: { deletionTimestamp, finalizers } }: PersistentVolume): boolean {
  return deletionTimestamp !== undefined && finalizers?.includes(volumeFinalizer) === true;
}

/** What is wrong with a volume, and what to do, both without a full stop. */
interface Contradiction {
  what: string;
  cure: string;
}

/** Describes a volume whose annotation names one of the known provisioners although its storage is not of that one's backend. */
export function contradictionOf(
  volume: PersistentVolume,
  isKnownProvisioner: (name: string) => boolean,
): Contradiction | undefined {
  const key = namingKey(volume, isKnownProvisioner);
  if (key === undefined) return undefined;
  const name = volume.metadata.annotations?.[key] ?? '';
  const otherwise = isHeld(volume)
    ? `remove the finalizer ${volumeFinalizer}: then the storage stays`
    : 'set the reclaim policy to Retain';
  return {
    what: `its annotation ${key} names ${name}, but ${sourceText(volume)}`,
    cure: `Correct the annotation, or ${otherwise}`,
  };
}

/** The event about a volume that is left as it is; the same from every instance. */
export function contradictionText({ metadata: { name } }: PersistentVolume, { what, cure }: Contradiction): string {
  return `persistentvolume ${name} is left as it is: ${what}. ${cure}`;
}

/** Whether the storage is certainly neither of this CSI driver nor of an in-tree plugin that it may have replaced. */
export function isForeignToDriver({ spec }: PersistentVolume, driverName: string): boolean {
  if (spec.csi !== undefined) return spec.csi.driver !== driverName;
  return inTreeSourceFields.every((field) => spec[field] === undefined);
}

function sourceText({ spec }: PersistentVolume): string {
  if (spec.csi !== undefined) return `its storage is of CSI driver ${spec.csi.driver}`;
  const kind = Object.keys(spec).find((field) => !otherFields.has(field));
  return `its source is ${kind ?? 'none'}`;
}

/** What a volume's `spec` has besides its source. */
const otherFields: ReadonlySet<string> = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
] satisfies (keyof PersistentVolume['spec'])[]);

/** Whether the storage of one of our volumes is to be deleted now; `shouldDelete` of the provisioner was called before. */
export function shouldDelete(volume: PersistentVolume, addFinalizer: boolean): boolean {
  const { deletionTimestamp, finalizers = [] } = volume.metadata;
  // being deleted without our finalizer: the storage is gone already, or not ours to delete
  if (deletionTimestamp !== undefined && !(addFinalizer && finalizers.includes(volumeFinalizer))) return false;
  return volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
}

/** The finalizers a volume should have and the strategic merge patch that leads there. */
export interface FinalizerChange {
  finalizers: string[];
  patch: { metadata: Record<string, unknown> };
}

/**
 * The change that our finalizer on a volume needs; undefined when it is right. It is kept while the storage is to be
 * deleted by us (policy Delete), else removed.
 */
export function finalizerUpkeep(volume: PersistentVolume, addFinalizer: boolean): FinalizerChange | undefined {
  const { finalizers = [], deletionTimestamp } = volume.metadata;
  const present = finalizers.includes(volumeFinalizer);
  const policy = volume.spec.persistentVolumeReclaimPolicy;
  if (!addFinalizer || policy === 'Retain' || policy === 'Recycle') {
    return present ? removeFinalizer(finalizers) : undefined;
  }
  const wanted = policy === 'Delete' && volume.status?.phase === 'Bound' && deletionTimestamp === undefined;
  return wanted && !present ? addToFinalizers(finalizers) : undefined;
}

function addToFinalizers(finalizers: readonly string[]): FinalizerChange {
  const all = [...finalizers, volumeFinalizer];
  const order = finalizers.length === 0 ? {} : { '$setElementOrder/finalizers': all };
  return { finalizers: all, patch: { metadata: { ...order, finalizers: [volumeFinalizer] } } };
}

/** Removes every occurrence of our finalizer from a list; the others keep their order. */
export function removeFinalizer(finalizers: readonly string[]): FinalizerChange {
  const rest = finalizers.filter((finalizer) => finalizer !== volumeFinalizer);
  if (rest.length === 0) return { finalizers: rest, patch: { metadata: { finalizers: null } } };
  return {
    finalizers: rest,
    patch: {
      metadata: { '$deleteFromPrimitiveList/finalizers': [volumeFinalizer], '$setElementOrder/finalizers': rest },
    },
  };
}

/** A volume as the object of an event. */
export function volumeReference({ metadata: { name, uid, resourceVersion } }: PersistentVolume): ObjectReference {
  return {
    kind: 'PersistentVolume',
    apiVersion: 'v1',
    name,
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}
