import type { SandboxClient, Subscription } from '../../../sandbox/api/client.ts';
import { annotation } from '../../../sandbox/control-plane/annotations.ts';
import {
  getObject,
  listObjects,
  removeAnnotation,
  updateObject,
} from '../../../sandbox/control-plane/object-access.ts';
import { resources, type Claim, type Volume } from '../../../sandbox/control-plane/objects.ts';

const finalizer = 'external-provisioner.volume.kubernetes.io/finalizer';

/** Plays the external provisioner "P" of the black-box cases: a volume per asked-for claim, and its deletion. */
export class ProvisionerDouble implements Disposable {
  readonly #client: SandboxClient;
  readonly #name: string;
  readonly #subscriptions: Subscription[];
  /** Nodes of claims whose node it sent back. */
  readonly refusedNodes: string[] = [];
  #refusals: number;

  constructor(client: SandboxClient, options: { name?: string; refusals?: number } = {}) {
    this.#client = client;
    this.#name = options.name ?? 'x.example.com';
    this.#refusals = options.refusals ?? 0;
    this.#subscriptions = [
      client.subscribe(resources.claims, ({ type, object }) => {
        if (type !== 'DELETED') this.#provision(object as Claim);
      }),
      client.subscribe(resources.volumes, ({ type, object }) => {
        if (type !== 'DELETED') this.#reclaim(object as Volume);
      }),
    ];
    for (const claim of listObjects(client, resources.claims)) this.#provision(claim);
    for (const volume of listObjects(client, resources.volumes)) this.#reclaim(volume);
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription.close();
  }

  #provision({ metadata: { namespace = '', name, uid } }: Claim): void {
    const claim = getObject(this.#client, resources.claims, { namespace, name });
    if (claim?.metadata.uid !== uid || claim?.spec.volumeName) return;
    if (claim?.metadata.annotations?.[annotation.storageProvisioner] !== this.#name) return;
    const { storageClassName = '' } = claim.spec;
    const storageClass = getObject(this.#client, resources.classes, { name: storageClassName });
    const node = claim.metadata.annotations[annotation.selectedNode];
    if (storageClass?.volumeBindingMode === 'WaitForFirstConsumer') {
      if (node === undefined) return;
      if (this.#refusals > 0) {
        this.#refusals--;
        this.refusedNodes.push(node);
        updateObject(this.#client, resources.claims, claim, (copy) => removeAnnotation(copy, annotation.selectedNode));
        return;
      }
    }
    if (this.#client.get(resources.volumes, { name: `pvc-${claim.metadata.uid}` }) !== undefined) return;
    this.createVolume(claim, (storageClass?.['reclaimPolicy'] ?? 'Delete') as string);
  }

  createVolume(claim: Claim, reclaimPolicy = 'Delete'): Volume {
    const { namespace = '', name, uid = '' } = claim.metadata;
    return this.#client.create(resources.volumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: `pvc-${uid}`,
        annotations: { [annotation.provisionedBy]: this.#name },
        ...(reclaimPolicy === 'Delete' ? { finalizers: [finalizer] } : {}),
      },
      spec: {
        accessModes: claim.spec.accessModes ?? [],
        capacity: { ...claim.spec.resources?.requests },
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
        persistentVolumeReclaimPolicy: reclaimPolicy,
        storageClassName: claim.spec.storageClassName ?? '',
        csi: { driver: this.#name, volumeHandle: uid },
      },
    }) as Volume;
  }

  #reclaim({ metadata: { name } }: Volume): void {
    const volume = getObject(this.#client, resources.volumes, { name });
    if (volume?.status?.phase !== 'Released' || volume.spec.persistentVolumeReclaimPolicy !== 'Delete') return;
    if (volume.metadata.annotations?.[annotation.provisionedBy] !== this.#name) return;
    if (volume.metadata.deletionTimestamp === undefined) this.#client.delete(resources.volumes, { name });
    const live = getObject(this.#client, resources.volumes, { name });
    if (live?.metadata.finalizers?.includes(finalizer) !== true) return;
    updateObject(this.#client, resources.volumes, live, ({ metadata }) => {
      metadata.finalizers = (metadata.finalizers ?? []).filter((entry) => entry !== finalizer);
    });
  }
}
