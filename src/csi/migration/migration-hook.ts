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
  /** Whether it is a volume of the in-tree plugin, which may be one that cannot be translated. Reads only the source. Does not throw. */
  hasSource(volume: PersistentVolume): boolean;
  /**
   * What identifies the storage of a volume of the in-tree plugin, in doubt too much; empty for every other volume. Reads
   * only the plugin's source. Does not throw.
   */
  storageKeys(volume: PersistentVolume): readonly string[];
  /** The key of a volume that the driver calls so. Does not throw. */
  handleKey(handle: string): string;
}
