import type { CsiVolumeSource, InTreeSourceField, PersistentVolume, StorageClass } from '../../provision/objects.ts';

/** A volume source as an in-tree plugin keeps it, and what else it keeps on the volume. */
export interface InTreeSource {
  source: object;
  annotations?: Record<string, string>;
}

/** A volume plugin that was once part of Kubernetes, and how its objects read for the CSI driver that replaced it. */
export interface InTreePlugin {
  /** As classes and annotations name it, such as `kubernetes.io/aws-ebs`. */
  readonly name: string;
  readonly driverName: string;
  /** Where a volume's `spec` holds its source, such as `awsElasticBlockStore`. */
  readonly sourceField: InTreeSourceField;
  /** A copy of a class of the plugin, for the driver. @throws {Error} when the class contradicts itself. */
  translateClass(storageClass: StorageClass): StorageClass;
  /** The source for a volume of the driver. @throws {Error} when it cannot be expressed. */
  inTreeSource(csi: CsiVolumeSource): InTreeSource;
  /** What the driver calls a volume of the plugin. @throws {Error} when the source names no volume. */
  csiSource(source: object, volume: PersistentVolume): Omit<CsiVolumeSource, 'driver'>;
  /** What a source and its handle have in common, where the handle says more. Absent: the source, translated, has the handle. */
  readonly storageKey?: StorageKey;
  /** Absent: the node affinity reads the same for both. */
  readonly topology?: VolumeTopology;
}

/** Source and handle are of the same storage when both keys are the same. */
export interface StorageKey {
  /** @throws {Error} when the source names no volume. */
  ofSource(source: object): string;
  ofHandle(handle: string): string;
}

/** Translates node affinity between plugin and driver. Neither function changes its argument. */
export interface VolumeTopology {
  /** @throws {Error} when the region of a zone is not known. */
  toInTree(volume: PersistentVolume): PersistentVolume;
  toCsi(volume: PersistentVolume): PersistentVolume;
}

/** File system type and read-only flag, as all sources hold them; defaults are left out. */
export function mountFields({ fsType, readOnly }: { fsType?: string | undefined; readOnly?: boolean | undefined }): {
  fsType?: string;
  readOnly?: true;
} {
  return {
    ...(fsType !== undefined && fsType !== '' && { fsType }),
    ...(readOnly === true && { readOnly }),
  };
}
