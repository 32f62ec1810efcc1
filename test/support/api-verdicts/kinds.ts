/** Where the API has the kinds whose validation is compared with Kubernetes'. */
export const comparedKinds = {
  PersistentVolume: { apiVersion: 'v1', path: '/api/v1/persistentvolumes' },
  PersistentVolumeClaim: { apiVersion: 'v1', path: '/api/v1/namespaces/default/persistentvolumeclaims' },
  StorageClass: { apiVersion: 'storage.k8s.io/v1', path: '/apis/storage.k8s.io/v1/storageclasses' },
  CSIDriver: { apiVersion: 'storage.k8s.io/v1', path: '/apis/storage.k8s.io/v1/csidrivers' },
  CSINode: { apiVersion: 'storage.k8s.io/v1', path: '/apis/storage.k8s.io/v1/csinodes' },
  VolumeAttributesClass: { apiVersion: 'storage.k8s.io/v1', path: '/apis/storage.k8s.io/v1/volumeattributesclasses' },
  CSIStorageCapacity: {
    apiVersion: 'storage.k8s.io/v1',
    path: '/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities',
  },
} as const;

export type ComparedKind = keyof typeof comparedKinds;

export const kindNames = Object.keys(comparedKinds) as ComparedKind[];

/** A JSON object nobody has looked into. */
export type Json = Record<string, unknown>;

/** A write that is sent as a dry run. */
export interface WriteCase {
  readonly kind: ComparedKind;
  /** Name of the stored object that a PUT replaces; without it the object is created. */
  readonly replaces?: string;
  /** Whether unknown fields are an error. */
  readonly strict?: boolean;
  /** A `resourceVersion` of `current` stands for that of the stored object. */
  readonly object: Json;
}
