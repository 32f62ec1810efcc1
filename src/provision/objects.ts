import type { KubeObject, ObjectMeta, ObjectReference, Resource } from '../kube/objects.ts';

/** A quantity as it stands in JSON: usually a string such as `5Gi`, at times a bare number. */
export type QuantityText = string | number;

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
    accessModes?: string[];
    resources?: { requests?: Record<string, QuantityText>; limits?: Record<string, QuantityText> };
    selector?: object;
    storageClassName?: string;
    volumeMode?: string;
    volumeName?: string;
    volumeAttributesClassName?: string;
    dataSource?: TypedLocalObjectReference;
    dataSourceRef?: TypedObjectReference;
  };
  status?: { phase?: string; accessModes?: string[]; capacity?: Record<string, QuantityText> };
}

/** core/v1 SecretReference. */
export interface SecretReference {
  name: string;
  namespace: string;
}

/** core/v1 CSIPersistentVolumeSource: the fields that provisioning writes or reads. */
export interface CsiVolumeSource {
  driver: string;
  volumeHandle: string;
  fsType?: string;
  readOnly?: boolean;
  volumeAttributes?: Record<string, string>;
  controllerPublishSecretRef?: SecretReference;
  nodeStageSecretRef?: SecretReference;
  nodePublishSecretRef?: SecretReference;
  controllerExpandSecretRef?: SecretReference;
  nodeExpandSecretRef?: SecretReference;
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

/** core/v1 PersistentVolume. Volume sources other than CSI pass through as unknown fields of `spec`. */
export interface PersistentVolume extends KubeObject {
  spec: {
    capacity?: Record<string, QuantityText> | undefined;
    accessModes?: string[] | undefined;
    claimRef?: ObjectReference;
    csi?: CsiVolumeSource;
    mountOptions?: string[] | undefined;
    nodeAffinity?: { required?: { nodeSelectorTerms: NodeSelectorTerm[] } };
    persistentVolumeReclaimPolicy?: string | undefined;
    storageClassName?: string;
    volumeAttributesClassName?: string;
    volumeMode?: string | undefined;
    [source: string]: unknown;
  };
  status?: { phase?: string; reason?: string; message?: string };
}

/** core/v1 TopologySelectorTerm: where a class allows volumes to be. */
export interface TopologySelectorTerm {
  matchLabelExpressions?: { key: string; values: string[] }[];
}

/** storage.k8s.io/v1 StorageClass. */
export interface StorageClass extends KubeObject {
  provisioner: string;
  parameters?: Record<string, string>;
  reclaimPolicy?: string;
  mountOptions?: string[];
  allowVolumeExpansion?: boolean;
  volumeBindingMode?: string;
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

export type { ObjectMeta };
