import { type Mirror, MultiMap } from './mirror.ts';
import { keyOf } from './object-access.ts';
import type { Pod, PodVolume } from './objects.ts';

/** Pods by the claims they use; it follows a mirror and lags as the mirror does. */
export class PodIndex {
  readonly #byClaim = new MultiMap<string>();
  readonly #mirror: Mirror<Pod>;

  constructor(mirror: Mirror<Pod>) {
    this.#mirror = mirror;
    mirror.listen(({ object, previous, deleted }) => {
      // A pod's volumes never change, so an update leaves the index as it is.
      if (!deleted && previous !== undefined) return;
      for (const claimKey of claimKeysOf(object)) {
        if (deleted) this.#byClaim.delete(claimKey, keyOf(object));
        else this.#byClaim.add(claimKey, keyOf(object));
      }
    });
  }

  /** The pods that use the claim `namespace/name`. */
  usersOf(claimKey: string): Pod[] {
    const pods: Pod[] = [];
    for (const key of this.#byClaim.get(claimKey)) {
      const pod = this.#mirror.get(key);
      if (pod !== undefined) pods.push(pod);
    }
    return pods;
  }
}

/** The claim name of a pod's volume: named, or derived for an ephemeral one (Kubernetes, "Ephemeral Volumes"). */
export function claimNameOf(pod: Pod, volume: PodVolume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName;
  return volume.ephemeral === undefined ? undefined : `${pod.metadata.name}-${volume.name}`;
}

/** The claims a pod uses, as `namespace/name`. */
export function claimKeysOf(pod: Pod): string[] {
  const keys: string[] = [];
  for (const volume of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, volume);
    if (name !== undefined) keys.push(keyOf({ metadata: { ...namespaceOf(pod), name } }));
  }
  return keys;
}

/** Whether the pod has run to its end; its object may stay. */
export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

function namespaceOf({ metadata: { namespace } }: Pod): { namespace?: string } {
  return namespace === undefined ? {} : { namespace };
}
