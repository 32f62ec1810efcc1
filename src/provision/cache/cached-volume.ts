/** What the cache keeps of volumes, and of their storage: a number for each key, a few bytes where handles have hundreds. */
import { fnv1a } from '../../base/text-hash.ts';
import { type KubeObject, markReduced } from '../../kube/kube-object.ts';
import type { SharedValues } from '../../kube/cache/store.ts';
import { migratedToKey, type PersistentVolume, provisionedByKey } from '../objects.ts';
import { namesProvisioner, type VolumeOwnership } from '../volume-fields.ts';
import { type KeptFields, type KeptParts, keptParts } from './kept-fields.ts';

/**
 * Makes the cached form of volumes. Only those whose storage we may have to delete are kept whole; the event that
 * releases a volume brings all of it. A bound one keeps what ownership and the finalizer need, and `fields`; one of
 * another provisioner only its name, as of a bound one whose source is not ours. Each keeps hashes of its `storageKeys`.
 */
export function volumeTransform(options: {
  shared: SharedValues;
  isKnownProvisioner: (name: string) => boolean;
  /** Default: each source is ours. */
  ownsSource?: VolumeOwnership['ownsSource'];
  fields?: KeptFields<PersistentVolume> | undefined;
  storageKeys?: ((volume: PersistentVolume) => readonly string[]) | undefined;
}): (object: KubeObject) => PersistentVolume {
  const { shared, isKnownProvisioner, ownsSource, fields, storageKeys } = options;
  const formOf = (volume: PersistentVolume & { metadata: { managedFields?: unknown } }): PersistentVolume => {
    if (!namesProvisioner(volume, isKnownProvisioner)) return foreignVolume(volume);
    if (isBound(volume)) {
      if (ownsSource?.(volume) === false) return foreignVolume(volume); // nothing is due before it is released
      return boundVolume(volume, shared, fields && keptParts(volume, fields));
    }
    delete volume.metadata.managedFields;
    return volume;
  };
  if (storageKeys === undefined) return (object) => formOf(object as PersistentVolume);
  return (object) => {
    const volume = object as PersistentVolume;
    const keys = storageKeys(volume);
    return keepStorageHashes(formOf(volume), keys);
  };
}

/** Whether the cached form of a volume is whole: it names us, and is not Bound. */
export function isWholeVolume(volume: PersistentVolume, isKnownProvisioner: (name: string) => boolean): boolean {
  return !isBound(volume) && namesProvisioner(volume, isKnownProvisioner);
}

function isBound({ status }: PersistentVolume): boolean {
  return status?.phase === 'Bound';
}

function foreignVolume({ metadata }: PersistentVolume): PersistentVolume {
  const { name, resourceVersion, uid } = metadata;
  return markReduced({ metadata: { name, resourceVersion, uid }, spec: noSpec }) as PersistentVolume;
}

const noSpec = Object.freeze({});

function boundVolume(
  { metadata, spec, status }: PersistentVolume,
  shared: SharedValues,
  kept: KeptParts<PersistentVolume> | undefined,
): PersistentVolume {
  const { [provisionedByKey]: provisionedBy, [migratedToKey]: migratedTo } = metadata.annotations ?? {};
  const annotations = {
    ...(provisionedBy !== undefined && { [provisionedByKey]: provisionedBy }),
    ...(migratedTo !== undefined && { [migratedToKey]: migratedTo }),
  };
  const readSpec = {
    persistentVolumeReclaimPolicy: spec.persistentVolumeReclaimPolicy,
    storageClassName: spec.storageClassName,
    ...(spec.csi !== undefined && { csi: { driver: spec.csi.driver } }),
  };
  const cached = {
    metadata: {
      name: metadata.name,
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
      deletionTimestamp: metadata.deletionTimestamp,
      finalizers: shared.value(metadata.finalizers),
      // not shared: these values differ for each volume and would only fill the table
      annotations: kept?.annotations ? { ...annotations, ...kept.annotations } : shared.value(annotations),
      ...(kept && { labels: kept.labels }),
    },
    spec: kept?.spec ? { ...readSpec, ...kept.spec } : shared.value(readSpec),
    status: shared.value({ phase: status?.phase }),
  };
  return markReduced(cached) as PersistentVolume;
}

/** Whether two cached forms differ in nothing that is read: then the change reaches no handler. */
export function sameVolume(old: PersistentVolume, volume: PersistentVolume): boolean {
  if (!sameStorageHashes(old, volume)) return false;
  if (old.spec === noSpec && volume.spec === noSpec) return true;
  return (
    // shared values are equal when they are the same; whole volumes are never shared and so always differ
    old.spec === volume.spec &&
    old.status === volume.status &&
    old.metadata.annotations === volume.metadata.annotations &&
    old.metadata.finalizers === volume.metadata.finalizers &&
    old.metadata.deletionTimestamp === volume.metadata.deletionTimestamp
  );
}

const hashes = Symbol('hashes of storage keys');

/** A single number by itself, since most volumes have one key. */
type Hashed = object & { [hashes]?: number | readonly number[] };

/** 32 bits of a key, as a signed integer: V8 keeps those without an allocation. */
export function storageHash(key: string): number {
  return fnv1a(key);
}

/**
 * Puts the hashes of the keys on a cached form, where JSON does not show them.
 *
 * @returns the same object.
 */
function keepStorageHashes<T extends object>(form: T, keys: readonly string[]): T {
  const [first, ...others] = keys;
  if (first === undefined) return form;
  const kept = others.length === 0 ? storageHash(first) : keys.map(storageHash);
  return Object.assign(form, { [hashes]: kept });
}

/** The hashes on a cached form: the index of the volumes by their storage. */
export function storageHashes(volume: PersistentVolume): readonly number[] {
  const kept = (volume as Hashed)[hashes];
  if (kept === undefined) return [];
  return typeof kept === 'number' ? [kept] : kept;
}

/** Whether two cached forms may be of the same storage, as far as the hashes tell. */
function sameStorageHashes(one: PersistentVolume, other: PersistentVolume): boolean {
  const [kept, others] = [(one as Hashed)[hashes], (other as Hashed)[hashes]];
  return kept === others || String(kept) === String(others);
}
