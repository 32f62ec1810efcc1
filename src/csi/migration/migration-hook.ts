import type { PersistentVolume, StorageClass } from '../../provision/objects.ts';

/** Translation for a driver that replaced an in-tree plugin; absent for all others. */
export interface MigrationHook {
  /**
   * The class as the driver understands it: a changed copy when it names the in-tree plugin, else the very object.
   *
   * @throws when the class cannot be translated.
   */
  translateClass(storageClass: StorageClass): StorageClass;
  /** A CSI volume in the in-tree form. @throws when it cannot be translated. */
  toInTree(volume: PersistentVolume): PersistentVolume;
  /**
   * A volume of the in-tree plugin in CSI form; every other volume is returned as the very object.
   *
   * @throws when the volume cannot be translated.
   */
  toCsi(volume: PersistentVolume): PersistentVolume;
  /**
   * Whether a volume of the in-tree plugin is the one that the driver calls so; in doubt it is. False for every other volume.
   * Does not throw.
   */
  holds(volume: PersistentVolume, handle: string): boolean;
  /**
   * For many volumes and handles: a volume holds the storage when `handleKey` of the handle is among its `storageKeys`. Does
   * not throw.
   */
  storageKeys(volume: PersistentVolume): readonly string[];
  handleKey(handle: string): string;
}
