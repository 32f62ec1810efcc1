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
