import type { Logger } from '../base/logger.ts';
import type { PersistentVolume } from './objects.ts';
import type { ProvisionError, ProvisionOptions } from './provisioner.ts';

/**
 * Notified of what the provisioner of a `ProvisionController` did, for example to count it or to refresh capacity. The
 * methods are called during a sync and must return at once. What they throw is logged and changes nothing.
 */
export interface ProvisionObserver {
  /** The storage was created. The volume is as it will be saved; that comes next, and another attempt may follow if it fails. */
  onProvisioned?(volume: PersistentVolume, options: ProvisionOptions): void;
  /** An attempt failed; its state says whether the backend was reached. Not called for a claim that was ignored. */
  onProvisionFailed?(failure: ProvisionError, options: ProvisionOptions): void;
  /** The storage behind the volume was deleted; its object, unless it could never be saved, is still there. */
  onDeleted?(volume: PersistentVolume): void;
}

/** The observer with all its methods, none of which throws. */
export function guardedObserver(
  observer: ProvisionObserver | undefined,
  logger: Logger,
): Readonly<Required<ProvisionObserver>> {
  const guarded = (method: keyof ProvisionObserver, call: () => void): void => {
    try {
      call();
    } catch (error) {
      logger.error({ err: error, method }, 'An observer of the provision controller failed');
    }
  };
  return {
    onProvisioned: (volume, options) => guarded('onProvisioned', () => observer?.onProvisioned?.(volume, options)),
    onProvisionFailed: (failure, options) =>
      guarded('onProvisionFailed', () => observer?.onProvisionFailed?.(failure, options)),
    onDeleted: (volume) => guarded('onDeleted', () => observer?.onDeleted?.(volume)),
  };
}
