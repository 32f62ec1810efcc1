/** What a program keeps of cached objects beyond the fields that the controller itself reads. */
import type { PersistentVolume, PersistentVolumeClaim } from '../objects.ts';

/**
 * Fields that the caches keep of objects which they otherwise reduce to 300 to 400 bytes each. Every object that has the
 * field pays for it: `spec.nfs` or one short annotation takes 100 to 150 bytes, so 50,000 volumes with both take about
 * 12 MB more; long values take their length besides. A change of a kept field reaches the handlers of the cache.
 */
export interface KeptFields<T extends PersistentVolume | PersistentVolumeClaim> {
  /** Keys in `metadata.annotations`. `all` includes what `kubectl apply` writes there, often kilobytes. */
  annotations?: readonly string[] | 'all';
  /** Keys in `metadata.labels`. */
  labels?: readonly string[] | 'all';
  /** Fields of `spec`, each whole. */
  spec?: readonly (keyof T['spec'] & string)[];
}

/** The parts of one object that are kept; those not requested, or that it lacks, are absent. */
export interface KeptParts<T extends PersistentVolume | PersistentVolumeClaim> {
  annotations?: Record<string, string>;
  labels?: Record<string, string>;
  spec?: Partial<T['spec']>;
}

/** Picks what is kept of an object. Shares its values with it. */
export function keptParts<T extends PersistentVolume | PersistentVolumeClaim>(
  { metadata, spec }: T,
  fields: KeptFields<T>,
): KeptParts<T> {
  const annotations = pickKeys(metadata.annotations, fields.annotations);
  const labels = pickKeys(metadata.labels, fields.labels);
  const kept = pickKeys<unknown>(spec as Record<string, unknown>, fields.spec) as Partial<T['spec']> | undefined;
  return { ...(annotations && { annotations }), ...(labels && { labels }), ...(kept && { spec: kept }) };
}

function pickKeys<V = string>(
  values: Record<string, V> | undefined,
  keys: readonly string[] | 'all' | undefined,
): Record<string, V> | undefined {
  if (values === undefined || keys === undefined || keys === 'all') return keys && values;
  const present = keys.filter((key) => Object.hasOwn(values, key));
  return present.length === 0 ? undefined : Object.fromEntries(present.map((key) => [key, values[key] as V]));
}
