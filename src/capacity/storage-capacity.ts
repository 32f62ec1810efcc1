import type { KubeObject, Resource } from '../kube/kube-object.ts';
import type { QuantityText } from '../provision/objects.ts';

/** meta/v1 LabelSelector: the nodes an object is about. */
export interface LabelSelector {
  matchLabels?: Record<string, string> | null;
  matchExpressions?: object[] | null;
}

/** storage.k8s.io/v1 CSIStorageCapacity: the capacity for a class in one segment. */
export interface StorageCapacity extends KubeObject {
  storageClassName: string;
  /** Absent: no node at all. Empty: every node. */
  nodeTopology?: LabelSelector | null;
  capacity?: QuantityText;
  /** Max size of a volume. Absent: unknown. */
  maximumVolumeSize?: QuantityText;
}

/** Versions of the API that have the kind; its fields are the same in both. */
export type CapacityApiVersion = 'v1' | 'v1beta1';

/** Labels that say which provisioner manages an object. Nothing else does: neither its name nor its owner. */
export const capacityLabels = {
  driver: 'csi.storage.k8s.io/drivername',
  managedBy: 'csi.storage.k8s.io/managed-by',
} as const;

/** The resource in one version of the API. */
export function storageCapacities(version: CapacityApiVersion): Resource {
  return {
    group: 'storage.k8s.io',
    version,
    plural: 'csistoragecapacities',
    kind: 'CSIStorageCapacity',
    namespaced: true,
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
  };
}
