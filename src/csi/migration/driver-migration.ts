import type { PersistentVolume, StorageClass } from '../../provision/objects.ts';
import type { Recoverable } from '../../provision/recoverable.ts';
import type { InTreePlugin } from './in-tree-plugin.ts';
import { replacedPlugin } from './in-tree-plugins.ts';

/** The migration of one driver; undefined for a driver that did not replace a plugin. */
export function driverMigration(driverName: string): MigrationHook | undefined {
  const plugin = replacedPlugin(driverName);
  if (plugin === undefined) return undefined;
  return {
    translateClass: (storageClass) =>
      storageClass.provisioner === plugin.name ? plugin.translateClass(storageClass) : storageClass,
    toInTree: (volume) => toInTree(plugin, volume),
    toCsi: (volume) => toCsi(plugin, volume),
    hasSource: (volume) => sourceOf(plugin, volume) !== undefined,
    storageKeys: (volume) => storageKeys(plugin, volume),
    handleKey: (handle) => handleKey(plugin, handle),
  };
}

function toInTree(plugin: InTreePlugin, volume: PersistentVolume): PersistentVolume {
  const { csi, ...spec } = volume.spec;
  if (csi?.driver !== plugin.driverName) throw new Error(`the volume is not one of ${plugin.driverName}`);
  const { source, annotations } = plugin.inTreeSource(csi);
  const translated = {
    ...volume,
    metadata: {
      ...volume.metadata,
      ...(annotations && { annotations: { ...volume.metadata.annotations, ...annotations } }),
    },
    spec: { ...spec, [plugin.sourceField]: source },
  };
  return plugin.topology?.toInTree(translated) ?? translated;
}

function toCsi(plugin: InTreePlugin, volume: PersistentVolume): PersistentVolume {
  const { [plugin.sourceField]: _, ...spec } = volume.spec;
  const source = sourceOf(plugin, volume);
  if (source === undefined) return volume;
  const csi = { driver: plugin.driverName, ...plugin.csiSource(source, volume) };
  const translated = { ...volume, spec: { ...spec, csi } };
  return plugin.topology?.toCsi(translated) ?? translated;
}

function storageKeys(plugin: InTreePlugin, volume: PersistentVolume): string[] {
  const source = sourceOf(plugin, volume);
  if (source === undefined) return [];
  const key = translatedKey(plugin, source, volume);
  if (key !== undefined) return [key];
  const values: unknown[] = Object.values(source); // what cannot be translated counts as it is
  const texts = values.filter((value) => typeof value === 'string');
  return texts.filter((text) => text !== '').map((text) => handleKey(plugin, text));
}

/** Undefined when the source cannot be translated, or names no storage. */
function translatedKey(plugin: InTreePlugin, source: object, volume: PersistentVolume): string | undefined {
  try {
    const { storageKey } = plugin;
    const key = storageKey === undefined ? plugin.csiSource(source, volume).volumeHandle : storageKey.ofSource(source);
    return key || undefined; // a source may lack any field
  } catch {
    return undefined;
  }
}

function handleKey(plugin: InTreePlugin, handle: string): string {
  return plugin.storageKey?.ofHandle(handle) ?? handle;
}

function sourceOf(plugin: InTreePlugin, { spec }: PersistentVolume): object | undefined {
  const source: unknown = spec[plugin.sourceField];
  return typeof source === 'object' && source !== null ? source : undefined;
}

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

/** How a driver's volumes are recognised by their storage, as `Recoverable` has it: those that it owns, and no others, have keys. */
export type CsiStorage = Pick<Recoverable, 'storageKeys' | 'handleKey'> & Required<Pick<Recoverable, 'ownsSource'>>;

/**
 * CSI volumes have their handle as the key, and those of the in-tree plugin that the driver replaced what their source has in
 * common with it: so the letter case of Azure's handles does not count, nor what the plugin does not say, such as the project
 * of a disk.
 *
 * @param options.isDriver - whose CSI volumes these are.
 * @param options.migration - of a driver that replaced a plugin.
 */
export function csiStorage(options: {
  isDriver: (name: string) => boolean;
  migration: MigrationHook | undefined;
}): CsiStorage {
  const { isDriver, migration } = options;
  const handleKey = (handle: string): string => migration?.handleKey(handle) ?? handle;
  return {
    handleKey,
    ownsSource: (volume) => {
      const { csi } = volume.spec;
      return csi === undefined ? migration?.hasSource(volume) === true : isDriver(csi.driver);
    },
    storageKeys: (volume) => {
      const { csi } = volume.spec;
      if (csi === undefined) return migration?.storageKeys(volume) ?? [];
      return isDriver(csi.driver) && csi.volumeHandle !== '' ? [handleKey(csi.volumeHandle)] : [];
    },
  };
}
