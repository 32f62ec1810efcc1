/**
 * What the cache of volumes keeps of their storage: a number for each key, a few bytes where handles have hundreds. Two keys
 * may have the same number, so a volume that is found by it is to be read before anything is concluded.
 */
import { fnv1a } from '../../base/text-hash.ts';
import type { PersistentVolume } from '../objects.ts';

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
export function keepStorageHashes<T extends object>(form: T, keys: readonly string[]): T {
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
export function sameStorageHashes(one: PersistentVolume, other: PersistentVolume): boolean {
  const [kept, others] = [(one as Hashed)[hashes], (other as Hashed)[hashes]];
  return kept === others || String(kept) === String(others);
}
