import type { ResourceRef, SandboxObject } from '../api/client.ts';

/** A quantity as it stands in JSON: usually a string such as `5Gi`, at times a bare number. */
export type QuantityText = string | number;

/** A reference to one object, as in a volume's `spec.claimRef`. */
export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
  resourceVersion?: string;
}

/** One `key operator values` requirement of a label or node selector. */
export interface SelectorRequirement {
  key: string;
  operator: string;
  values?: string[];
}

/** meta/v1 LabelSelector. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: SelectorRequirement[];
}

/** core/v1 NodeSelectorTerm: all of its requirements must hold; a term without any matches nothing. */
export interface NodeSelectorTerm {
  matchExpressions?: SelectorRequirement[];
  matchFields?: SelectorRequirement[];
}

/** core/v1 NodeSelector: one term must hold. */
export interface NodeSelector {
  nodeSelectorTerms?: NodeSelectorTerm[];
}

/** core/v1 PersistentVolumeClaim, as far as the controllers read it. */
export interface Claim extends SandboxObject {
  spec: {
    accessModes?: string[];
    resources?: { requests?: Record<string, QuantityText> };
    selector?: LabelSelector;
    storageClassName?: string;
    volumeAttributesClassName?: string;
    volumeMode?: string;
    volumeName?: string;
  };
  status?: {
    phase?: string;
    accessModes?: string[];
    capacity?: Record<string, QuantityText>;
    currentVolumeAttributesClassName?: string;
  };
}

/** core/v1 PersistentVolume, as far as the controllers read it. */
export interface Volume extends SandboxObject {
  spec: {
    accessModes?: string[];
    capacity?: Record<string, QuantityText>;
    claimRef?: ObjectReference;
    csi?: { driver?: string };
    nodeAffinity?: { required?: NodeSelector };
    persistentVolumeReclaimPolicy?: string;
    storageClassName?: string;
    volumeAttributesClassName?: string;
    volumeMode?: string;
  };
  status?: { phase?: string; message?: string; reason?: string };
}

/** storage.k8s.io/v1 StorageClass, as far as the controllers read it. */
export interface StorageClass extends SandboxObject {
  provisioner: string;
  volumeBindingMode?: string;
  allowedTopologies?: { matchLabelExpressions?: { key: string; values?: string[] }[] }[];
}

/** One entry of a pod's `status.conditions`. */
export interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
}

/** One entry of a pod's `spec.volumes`, as far as claims go. */
export interface PodVolume {
  name: string;
  persistentVolumeClaim?: { claimName: string };
  ephemeral?: object;
}

/** A toleration of a pod. */
export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
}

/** core/v1 Pod, as far as the controllers read it. */
export interface Pod extends SandboxObject {
  spec: {
    nodeName?: string;
    schedulerName?: string;
    schedulingGates?: { name: string }[];
    nodeSelector?: Record<string, string>;
    affinity?: { nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector } };
    tolerations?: Toleration[];
    volumes?: PodVolume[];
    containers?: { name: string; image?: string }[];
  };
  status?: {
    phase?: string;
    conditions?: PodCondition[];
    startTime?: string;
    containerStatuses?: object[];
  };
}

/** core/v1 Node, as far as the scheduler reads it. */
export interface Node extends SandboxObject {
  spec?: { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[] };
}

/** storage.k8s.io/v1 CSIDriver, as far as the scheduler reads it. */
export interface CsiDriver extends SandboxObject {
  spec: { storageCapacity?: boolean };
}

/** storage.k8s.io/v1 CSIStorageCapacity. */
export interface StorageCapacity extends SandboxObject {
  storageClassName: string;
  nodeTopology?: LabelSelector;
  capacity?: QuantityText;
  maximumVolumeSize?: QuantityText;
}

/** core/v1 Namespace, as far as its controller reads it. */
export interface Namespace extends SandboxObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string };
}

/** A resource whose objects have the type `T`; the type exists for the checker only. */
export interface TypedResource<T extends SandboxObject> extends ResourceRef {
  readonly sample?: T;
}

const core = (plural: string): ResourceRef => ({ group: '', version: 'v1', plural });
const storage = (plural: string): ResourceRef => ({ group: 'storage.k8s.io', version: 'v1', plural });

/** The resources the controllers work on. */
export const resources = {
  claims: core('persistentvolumeclaims') as TypedResource<Claim>,
  volumes: core('persistentvolumes') as TypedResource<Volume>,
  pods: core('pods') as TypedResource<Pod>,
  nodes: core('nodes') as TypedResource<Node>,
  namespaces: core('namespaces') as TypedResource<Namespace>,
  classes: storage('storageclasses') as TypedResource<StorageClass>,
  csiDrivers: storage('csidrivers') as TypedResource<CsiDriver>,
  csiNodes: storage('csinodes') as TypedResource<SandboxObject>,
  capacities: storage('csistoragecapacities') as TypedResource<StorageCapacity>,
};
