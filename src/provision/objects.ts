import type { KubeObject, ObjectReference, Resource } from '../kube/kube-object.ts';
import type { CsiVolumeSource, SecretReference, VolumeSources } from './cache/volume-source.ts';

/** A quantity in JSON: usually a string such as `5Gi`, sometimes a bare number. */
export type QuantityText = string | number;

/** How many nodes, or the pods of how many nodes, may mount a volume, and how (core/v1 PersistentVolumeAccessMode). */
export type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod';

/** Whether pods get a file system or the bare device. Absent means a file system. */
export type VolumeMode = 'Filesystem' | 'Block';

/** What becomes of the storage when the claim is gone; `Recycle` is deprecated. */
export type ReclaimPolicy = 'Delete' | 'Retain' | 'Recycle';

/** When the claims of a class get their volumes: at once, or when a pod is scheduled. */
export type VolumeBindingMode = 'Immediate' | 'WaitForFirstConsumer';

/** core/v1 TypedLocalObjectReference: what a claim is filled from, in its own namespace. */
export interface TypedLocalObjectReference {
  apiGroup?: string | null;
  kind: string;
  name: string;
}

/** core/v1 TypedObjectReference: what a claim is filled from, possibly in another namespace. */
export interface TypedObjectReference extends TypedLocalObjectReference {
  namespace?: string | null;
}

/** core/v1 PersistentVolumeClaim: the fields that provisioning reads. */
export interface PersistentVolumeClaim extends KubeObject {
  spec: {
    accessModes?: AccessMode[];
    resources?: { requests?: Record<string, QuantityText>; limits?: Record<string, QuantityText> };
    selector?: object;
    storageClassName?: string;
    volumeMode?: VolumeMode;
    volumeName?: string;
    volumeAttributesClassName?: string;
    dataSource?: TypedLocalObjectReference;
    dataSourceRef?: TypedObjectReference;
  };
  status?: { phase?: string; accessModes?: AccessMode[]; capacity?: Record<string, QuantityText> };
}

/** core/v1 NodeSelectorRequirement: one condition on a node. */
export interface NodeSelectorRequirement {
  key: string;
  operator: string;
  values?: string[];
}

/** core/v1 NodeSelectorTerm: conditions that must all hold; of several terms one is enough. */
export interface NodeSelectorTerm {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
}

/** core/v1 PersistentVolumeSpec. One of the fields of `VolumeSources` holds the source. */
export interface PersistentVolumeSpec extends Partial<VolumeSources> {
  capacity?: Record<string, QuantityText> | undefined;
  accessModes?: AccessMode[] | undefined;
  claimRef?: ObjectReference;
  mountOptions?: string[] | undefined;
  nodeAffinity?: { required?: { nodeSelectorTerms: NodeSelectorTerm[] } };
  persistentVolumeReclaimPolicy?: ReclaimPolicy | undefined;
  storageClassName?: string;
  volumeAttributesClassName?: string;
  volumeMode?: VolumeMode | undefined;
}

/** core/v1 PersistentVolume. */
export interface PersistentVolume extends KubeObject {
  spec: PersistentVolumeSpec;
  status?: { phase?: string; reason?: string; message?: string; lastPhaseTransitionTime?: string };
}

/** core/v1 TopologySelectorTerm: where a class allows volumes to be. */
export interface TopologySelectorTerm {
  matchLabelExpressions?: { key: string; values: string[] }[];
}

/** storage.k8s.io/v1 StorageClass. */
export interface StorageClass extends KubeObject {
  provisioner: string;
  parameters?: Record<string, string>;
  reclaimPolicy?: ReclaimPolicy;
  mountOptions?: string[];
  allowVolumeExpansion?: boolean;
  volumeBindingMode?: VolumeBindingMode;
  allowedTopologies?: TopologySelectorTerm[];
}

/** The resource of claims, for clients and informers. */
export const persistentVolumeClaims: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  namespaced: true,
  verbs: ['get', 'list', 'watch', 'update'],
};

/** The resource of volumes, for clients and informers. */
export const persistentVolumes: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
  namespaced: false,
  verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
};

/** The resource of classes, for clients and informers. */
export const storageClasses: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'storageclasses',
  kind: 'StorageClass',
  namespaced: false,
  verbs: ['get', 'list', 'watch'],
};

export type { CsiVolumeSource, SecretReference };
