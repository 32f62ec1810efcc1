/** The objects of Kubernetes that provisioning reads or writes, with their resources, annotations and finalizers. */
import type { KubeObject, ObjectReference, Resource } from '../kube/kube-object.ts';

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

/** Where the storage of a volume is, in each of the kinds that Kubernetes knows (core/v1 PersistentVolumeSource). */

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

/** core/v1 NFSVolumeSource: a folder that a server exports. */
export interface NfsVolumeSource {
  server: string;
  /** Absolute path of the exported folder. */
  path: string;
  readOnly?: boolean;
}

/** core/v1 HostPathVolumeSource: a path of whichever node a pod runs on, for clusters of one node. */
export interface HostPathVolumeSource {
  path: string;
  /** What is checked before it is mounted. Default, and empty: nothing. */
  type?: '' | 'DirectoryOrCreate' | 'Directory' | 'FileOrCreate' | 'File' | 'Socket' | 'CharDevice' | 'BlockDevice';
}

/** core/v1 LocalVolumeSource: a disk or folder of one node. The volume needs a `nodeAffinity` that names the node. */
export interface LocalVolumeSource {
  path: string;
  /** For a block device that is mounted. Default: detected. */
  fsType?: string;
}

/** core/v1 ISCSIPersistentVolumeSource: a LUN of an iSCSI target. */
export interface IscsiVolumeSource {
  targetPortal: string;
  iqn: string;
  lun: number;
  portals?: string[];
  iscsiInterface?: string;
  initiatorName?: string;
  chapAuthDiscovery?: boolean;
  chapAuthSession?: boolean;
  secretRef?: Partial<SecretReference>;
  fsType?: string;
  readOnly?: boolean;
}

/** core/v1 FCVolumeSource: a Fibre Channel LUN, by target and LUN or by world wide identifiers. */
export interface FcVolumeSource {
  targetWWNs?: string[];
  lun?: number;
  wwids?: string[];
  fsType?: string;
  readOnly?: boolean;
}

/** core/v1 FlexPersistentVolumeSource: for a FlexVolume driver on the nodes. */
export interface FlexVolumeSource {
  driver: string;
  options?: Record<string, string>;
  secretRef?: Partial<SecretReference>;
  fsType?: string;
  readOnly?: boolean;
}

/** Sources of in-tree plugins, which CSI drivers have replaced: only CSI migration knows their fields. */
export const inTreeSourceFields = [
  'awsElasticBlockStore',
  'azureDisk',
  'azureFile',
  'cinder',
  'gcePersistentDisk',
  'portworxVolume',
  'vsphereVolume',
] as const;

/** Where a volume of an in-tree plugin that a CSI driver may replace has its source: a field of the `spec`. */
export type InTreeSourceField = (typeof inTreeSourceFields)[number];

/** Every kind of source by its field in a volume's `spec`, which holds exactly one of them. */
export interface VolumeSources extends Record<InTreeSourceField, object> {
  csi: CsiVolumeSource;
  nfs: NfsVolumeSource;
  hostPath: HostPathVolumeSource;
  local: LocalVolumeSource;
  iscsi: IscsiVolumeSource;
  fc: FcVolumeSource;
  flexVolume: FlexVolumeSource;
}

/** gateway.networking.k8s.io/v1beta1 ReferenceGrant: the owner of a namespace lets others refer into it. */
export interface ReferenceGrant extends KubeObject {
  spec?: {
    from?: { group?: string; kind?: string; namespace?: string }[];
    to?: { group?: string; kind?: string; name?: string | null }[];
  };
}

export const referenceGrants: Resource = {
  group: 'gateway.networking.k8s.io',
  version: 'v1beta1',
  plural: 'referencegrants',
  kind: 'ReferenceGrant',
  namespaced: true,
};

/**
 * Whether this grant, in the namespace of the source, allows claims of another namespace to use the source: its `from` and its
 * `to` must both match (Gateway API, "ReferenceGrant").
 */
export function allowsSource(
  { spec }: ReferenceGrant,
  claimNamespace: string,
  source: { apiGroup: string; kind: string; name: string },
): boolean {
  const from = (spec?.from ?? []).some(
    ({ group = '', kind, namespace }) =>
      group === '' && kind === 'PersistentVolumeClaim' && namespace === claimNamespace,
  );
  const to = (spec?.to ?? []).some(
    ({ group = '', kind, name }) =>
      group === source.apiGroup && kind === source.kind && (name === source.name || (name ?? '') === ''),
  );
  return from && to;
}

/** Annotation keys and finalizers; the values are those of Kubernetes itself. */

/** On a claim: the provisioner that is to create its volume. */
export const storageProvisionerKey = 'volume.kubernetes.io/storage-provisioner';
export const betaStorageProvisionerKey = 'volume.beta.kubernetes.io/storage-provisioner';
/** On a claim (and on old volumes): the class, before `spec.storageClassName`. */
export const betaStorageClassKey = 'volume.beta.kubernetes.io/storage-class';
/** On a claim: the node that the scheduler chose. */
export const selectedNodeKey = 'volume.kubernetes.io/selected-node';
export const alphaSelectedNodeKey = 'volume.alpha.kubernetes.io/selected-node';
/** On a volume: the class's provisioner at the time. */
export const provisionedByKey = 'pv.kubernetes.io/provisioned-by';
/** On a claim or volume: the CSI driver that took over from an in-tree plugin. */
export const migratedToKey = 'pv.kubernetes.io/migrated-to';
/** Holds a volume until its storage is gone. */
export const volumeFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer';

/** Annotations that decide whether a claim is to be provisioned, for which node, and by which provisioner. */
export const decisiveAnnotationKeys = [
  storageProvisionerKey,
  betaStorageProvisionerKey,
  betaStorageClassKey,
  selectedNodeKey,
  alphaSelectedNodeKey,
  migratedToKey,
] as const;
