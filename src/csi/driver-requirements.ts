import type { DriverCapabilities } from './driver-info.ts';

/** What an operation needs of the driver beyond CREATE_DELETE_VOLUME. */
export interface Needs {
  snapshotRestore?: boolean;
  clone?: boolean;
  attributesClass?: boolean;
}

/**
 * The first capability the driver lacks, as an error text; undefined when it has all of them. The order decides which
 * of several is reported.
 */
export function missingCapability(has: DriverCapabilities, needs: Needs = {}): string | undefined {
  if (!has.controllerService) return lack('dynamic provisioning', 'plugin CONTROLLER_SERVICE');
  if (!has.createDeleteVolume) return lack('dynamic provisioning', 'controller CREATE_DELETE_VOLUME');
  if (needs.snapshotRestore === true && !has.createDeleteSnapshot) {
    return lack('snapshot restore', 'controller CREATE_DELETE_SNAPSHOT');
  }
  if (needs.clone === true && !has.cloneVolume) return lack('clone operations', 'controller CLONE_VOLUME');
  if (needs.attributesClass === true && !has.modifyVolume) {
    return lack('VolumeAttributesClass', 'controller MODIFY_VOLUME');
  }
  return undefined;
}

function lack(what: string, capability: string): string {
  return `CSI driver does not support ${what}: ${capability} capability is not reported`;
}
