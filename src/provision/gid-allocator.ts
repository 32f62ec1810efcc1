/** A group id for each volume, from a range of the class: for storage that separates users by group. */
import { KeyedLocks } from '../base/keyed-locks.ts';
import { shortValue } from '../base/short-value.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { betaStorageClassKey, type PersistentVolume, persistentVolumes, type StorageClass } from './objects.ts';
import { ProvisionError } from './provisioner.ts';
import { readParameters } from './read-parameters.ts';

/**
 * The annotation of a PersistentVolume from which the kubelet takes the group to add to the Pods that mount it (Kubernetes page
 * "Configure a Pod to Use a PersistentVolume for Storage", "Access control").
 */
export const gidAnnotation = 'pv.beta.kubernetes.io/gid';

/** The group ids that a class gives to volumes, both ends included. */
export interface GidRange {
  min: number;
  max: number;
}

/** Bounds and default. Smaller ids belong to the system; file systems and tools disagree about the sign of larger ones. */
const bounds: GidRange = { min: 2000, max: 2_147_483_647 };

/**
 * The range that the parameters `gidMin` and `gidMax` of a class give, in whatever case; default and bounds 2000 to
 * 2147483647.
 *
 * @throws {ProvisionError} infeasible, naming parameter and value, when one is not a number within the bounds, or `gidMin` exceeds
 * `gidMax`.
 */
export function gidRange(storageClass: StorageClass): GidRange {
  const min = bound(storageClass, 'gidMin') ?? bounds.min;
  const max = bound(storageClass, 'gidMax') ?? bounds.max;
  if (min > max) throw refused(storageClass, `gidMin ${min} is above gidMax ${max}`);
  return { min, max };
}

function bound(storageClass: StorageClass, name: 'gidMin' | 'gidMax'): number | undefined {
  const value = readParameters(storageClass, { keys: [name], ignoreCase: true, strict: false }).text(name);
  if (value === undefined) return undefined;
  const gid = /^\d{1,10}$/.test(value) ? Number(value) : NaN;
  if (gid >= bounds.min && gid <= bounds.max) return gid;
  const allowed = `a number from ${bounds.min} to ${bounds.max}`;
  throw refused(storageClass, `${name} ${JSON.stringify(shortValue(value))} is not ${allowed}`);
}

function refused({ metadata }: StorageClass, why: string): ProvisionError {
  return new ProvisionError(`StorageClass ${metadata.name}: ${why}`, { state: 'finished', infeasible: true });
}

/**
 * Gives each volume of a class a group id that no other volume of the class has. What is taken is read once per class, from
 * the annotations `pv.beta.kubernetes.io/gid` of the PersistentVolumes in the cluster, page by page, and kept in memory from
 * then on: one process at a time may allocate for a class.
 */
export class GidAllocator {
  readonly #client: Pick<KubeClient, 'select'>;
  readonly #tables = new Map<string, GidTable>();
  readonly #locks = new KeyedLocks();

  /** @param options.client - needs `list` on PersistentVolumes. */
  constructor({ client }: { client: Pick<KubeClient, 'select'> }) {
    this.#client = client;
  }

  /**
   * The group id of a volume: the one that it has, else the lowest that is free. Repeated for one volume it returns the
   * same. To be written to the annotation `gidAnnotation` of the volume.
   *
   * @throws {ProvisionError} for a bad range, and when none is free; {ApiError} and {TransportError} when the volumes
   * cannot be listed.
   */
  async allocate(
    { storageClass, volumeName }: { storageClass: StorageClass; volumeName: string },
    options: { signal?: AbortSignal } = {},
  ): Promise<number> {
    const range = gidRange(storageClass);
    const table = await this.#table(storageClass.metadata.name, options);
    const gid = table.take(volumeName, range);
    if (gid !== undefined) return gid;
    throw new ProvisionError(
      `StorageClass ${storageClass.metadata.name}: all ${range.max - range.min + 1} group ids ` +
        `from ${range.min} to ${range.max} are taken; delete volumes, or use a class with a larger range`,
      { state: 'finished' },
    );
  }

  /** Records a group id that storage has already, such as that of a volume which was not saved yet. Safe to repeat. */
  async keep(
    { className, volumeName, gid }: { className: string; volumeName: string; gid: number },
    options: { signal?: AbortSignal } = {},
  ): Promise<void> {
    (await this.#table(className, options)).add(volumeName, gid);
  }

  /** The storage of the volume is gone: its group id may be given again. Safe to repeat. */
  release(volumeName: string): void {
    for (const table of this.#tables.values()) table.remove(volumeName);
  }

  #table(className: string, { signal }: { signal?: AbortSignal }): Promise<GidTable> {
    const section = async (): Promise<GidTable> => {
      const known = this.#tables.get(className);
      if (known !== undefined) return known;
      const table = new GidTable();
      const pick = (volume: PersistentVolume): TakenGid | undefined => takenGid(volume, className);
      for (const { volumeName, gid } of await this.#client.select(persistentVolumes, pick, { signal })) {
        table.add(volumeName, gid);
      }
      this.#tables.set(className, table);
      return table;
    };
    return this.#locks.run(className, section, { ...(signal && { signal }) });
  }
}

/** All that is kept of a volume: a cluster may have very many. */
interface TakenGid {
  volumeName: string;
  gid: number;
}

function takenGid({ metadata, spec }: PersistentVolume, className: string): TakenGid | undefined {
  const ofVolume = metadata.annotations?.[betaStorageClassKey] ?? spec.storageClassName;
  const text = metadata.annotations?.[gidAnnotation] ?? '';
  if (ofVolume !== className || !/^\d{1,10}$/.test(text)) return undefined;
  return { volumeName: metadata.name, gid: Number(text) };
}

/** The group ids of one class. Volumes of a range that was changed since may share one; it is free when both are gone. */
class GidTable {
  readonly #byVolume = new Map<string, number>();
  readonly #holders = new Map<number, number>();
  /** Nothing from `#from` up to here is free. */
  #next = 0;
  #from = 0;

  take(volumeName: string, { min, max }: GidRange): number | undefined {
    const own = this.#byVolume.get(volumeName);
    if (own !== undefined) return own;
    if (min !== this.#from) [this.#from, this.#next] = [min, min];
    while (this.#holders.has(this.#next)) this.#next += 1;
    if (this.#next > max) return undefined;
    this.add(volumeName, this.#next);
    return this.#next;
  }

  add(volumeName: string, gid: number): void {
    this.remove(volumeName);
    this.#byVolume.set(volumeName, gid);
    this.#holders.set(gid, (this.#holders.get(gid) ?? 0) + 1);
  }

  remove(volumeName: string): void {
    const gid = this.#byVolume.get(volumeName);
    if (gid === undefined) return;
    this.#byVolume.delete(volumeName);
    const others = (this.#holders.get(gid) ?? 1) - 1;
    if (others > 0) this.#holders.set(gid, others);
    else this.#holders.delete(gid);
    if (others === 0 && gid >= this.#from) this.#next = Math.min(this.#next, gid);
  }
}
