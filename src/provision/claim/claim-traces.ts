import { shortValue } from '../../base/short-value.ts';
import { claimUid, className } from '../claim-fields.ts';
import type { PersistentVolumeClaim } from '../objects.ts';
import { provisionerAttribute, SyncTraces, type SyncTracesOptions } from './sync-traces.ts';

/** One trace for each claim, from the watch event that shows it without a volume until it is bound or gone. By UID. */
export class ClaimTraces extends SyncTraces {
  readonly #volumeName: (claim: PersistentVolumeClaim) => string;

  constructor(options: SyncTracesOptions & { volumeName: (claim: PersistentVolumeClaim) => string }) {
    super(options);
    this.#volumeName = options.volumeName;
  }

  /** A watch event has shown a claim that needs a sync. Safe to repeat. */
  seen(claim: PersistentVolumeClaim): void {
    const uid = claimUid(claim);
    const { namespace = '', name } = claim.metadata;
    this.begin(uid, `claim ${namespace}/${name}`, {
      id: uid,
      startMs: this.clock.wallMs(),
      attributes: {
        'k8s.persistentvolumeclaim.uid': uid,
        'k8s.persistentvolumeclaim.name': name,
        'k8s.namespace.name': namespace,
        'k8s.storageclass.name': shortValue(className(claim)),
        'k8s.persistentvolume.name': this.#volumeName(claim),
        [provisionerAttribute]: this.provisionerName,
      },
    });
  }
}
