import type { Recoverable } from '../provision/recoverable.ts';
import type { MigrationHook } from './migration/driver-migration.ts';

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
