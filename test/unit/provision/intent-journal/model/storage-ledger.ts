/** What became of each piece of storage, whatever its handle: the same handle may stand for another one later. */
import type { KubeObject } from '../../../../../src/kube/kube-object.ts';
import type { PersistentVolume } from '../../../../../src/provision/objects.ts';
import type { Backend, BackendVolume } from './backend.ts';

export class StorageLedger {
  readonly #backend: Backend;
  /** Storage that was in a PersistentVolume at some time. */
  readonly #held = new Set<BackendVolume>();
  /** Storage that is kept on purpose. */
  readonly #kept = new Set<BackendVolume>();
  /** Of the claims created so far when etcd was restored: what it has forgotten of them cannot be found any more. */
  #forgotten = 0;
  /** Names of volumes that were in a PersistentVolume at some time. */
  readonly #heldNames = new Set<string>();

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  onStored(plural: string, object: KubeObject): void {
    if (plural !== 'persistentvolumes') return;
    const { spec } = object as PersistentVolume;
    const storage = this.#backend.volumes.get(spec.csi?.volumeHandle ?? '');
    if (storage === undefined) return;
    this.#held.add(storage);
    this.#heldNames.add(storage.name);
  }

  wasHeld(storage: BackendVolume): boolean {
    return this.#held.has(storage);
  }

  /** An administrator decides to keep the storage. */
  keep(handle: string): void {
    const storage = this.#backend.volumes.get(handle);
    if (storage !== undefined) this.#kept.add(storage);
  }

  isKept(storage: BackendVolume): boolean {
    return this.#kept.has(storage);
  }

  /** Etcd was restored. @param lastUid - the number in the latest UID so far. */
  forgetUntil(lastUid: number): void {
    this.#forgotten = lastUid;
  }

  /** Whether nobody can be blamed for storage that nothing refers to. */
  isExcused(storage: BackendVolume): boolean {
    if (this.#kept.has(storage) || Number(/[0-9]+$/.exec(storage.name)?.[0]) <= this.#forgotten) return true;
    // made by a call that ended after the volume was reclaimed: a volume of that name is never looked for again
    return this.#heldNames.has(storage.name) && !this.#held.has(storage);
  }
}
