import type { PersistentVolume } from '../objects.ts';
import { provisionerAttribute, SyncTraces, type TracedEnd } from '../claim/sync-traces.ts';

/** Max volumes whose time in the queue is noted; beyond them it is not traced. */
const maxQueued = 20_000;

/** One trace for each volume whose storage is deleted, from the watch event that shows it released until it is gone. By name. */
export class DeletionTraces extends SyncTraces {
  /** When a volume that may be deleted entered the queue, in milliseconds since the Unix epoch, by name. */
  readonly #queuedMs = new Map<string, number>();

  /** A watch event has shown a volume that may have to be deleted. Safe to repeat. */
  seen({ metadata: { name } }: PersistentVolume): void {
    if (this.#queuedMs.size < maxQueued && !this.#queuedMs.has(name)) this.#queuedMs.set(name, this.clock.wallMs());
  }

  /** Deletes a volume, as a part of its trace. */
  async deletion<T extends TracedEnd>(volume: PersistentVolume, work: () => Promise<T>): Promise<T> {
    const { name, uid = '' } = volume.metadata;
    this.begin(name, `delete volume ${name}`, {
      id: uid,
      startMs: this.#queuedMs.get(name) ?? this.clock.wallMs(),
      attributes: {
        'k8s.persistentvolume.name': name,
        'k8s.persistentvolume.uid': uid,
        'k8s.storageclass.name': volume.spec.storageClassName ?? '',
        [provisionerAttribute]: this.provisionerName,
        ...claimAttributes(volume),
      },
    });
    return this.attempt(name, work);
  }

  override settled(name: string): void {
    this.#queuedMs.delete(name);
    super.settled(name);
  }
}

/** The claim whose volume it was: its trace shows how the volume was created. */
function claimAttributes({ spec: { claimRef } }: PersistentVolume): Record<string, string> {
  if (claimRef === undefined) return {};
  const { namespace = '', name = '', uid = '' } = claimRef;
  return {
    'k8s.namespace.name': namespace,
    'k8s.persistentvolumeclaim.name': name,
    'k8s.persistentvolumeclaim.uid': uid,
  };
}
