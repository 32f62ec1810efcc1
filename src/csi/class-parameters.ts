/** What the keys of a StorageClass's `parameters` mean to us, and which of them the driver gets to see. */
import { compareBytes } from '../base/compare-bytes.ts';
import type { Logger } from '../base/logger.ts';
import { ProvisionError } from '../provision/provisioner.ts';

/** Keys with this beginning belong to the CSI sidecars and never reach a driver. */
export const reservedPrefix = 'csi.storage.k8s.io/';

export const fsTypeKey = `${reservedPrefix}fstype`;

/** Logs the use of a key that has a prefixed successor. */
export function warnDeprecated(logger: Logger, deprecated: string, current: string): void {
  logger.warn(
    { key: deprecated, successor: current },
    `"${deprecated}" is deprecated and will be removed in a future release, please use "${current}" instead`,
  );
}

/** Beginnings of the reserved keys that come in pairs ending in `secret-name` and `secret-namespace`. */
const secretPairs = ['', 'provisioner-', 'controller-publish-', 'node-stage-', 'node-publish-'].concat([
  'controller-expand-',
  'node-expand-',
  'controller-modify-',
]);

const reservedKeys = new Set([
  fsTypeKey,
  ...secretPairs.flatMap((pair) => [`${reservedPrefix}${pair}secret-name`, `${reservedPrefix}${pair}secret-namespace`]),
]);

/**
 * The filesystem type a class asks for: its prefixed key, or any spelling of the deprecated `fstype`.
 *
 * @returns the default where the class names none or an empty one; may be empty.
 * @throws {ProvisionError} state `finished` when the class has more than one such key.
 */
export function fsTypeOf(parameters: Record<string, string>, defaultFsType: string): string {
  const keys = fsTypeKeys(parameters);
  const [key] = keys;
  if (keys.length > 1) {
    throw new ProvisionError(`fstype specified in parameters with both "fstype" and "${fsTypeKey}" keys`, {
      state: 'finished',
    });
  }
  return (key === undefined ? '' : parameters[key]) || defaultFsType;
}

/** Logs a deprecated spelling of the filesystem type's key. */
export function warnDeprecatedFsType(parameters: Record<string, string>, logger: Logger): void {
  for (const key of fsTypeKeys(parameters)) if (key !== fsTypeKey) warnDeprecated(logger, key, fsTypeKey);
}

function fsTypeKeys(parameters: Record<string, string>): string[] {
  return Object.keys(parameters).filter((key) => key === fsTypeKey || key.toLowerCase() === 'fstype');
}

/**
 * The parameters for the driver: the class's own without the reserved keys. Deprecated keys stay.
 *
 * @throws {ProvisionError} state `finished` for a reserved key that nobody knows, such as one of the snapshotter's.
 */
export function driverParameters(parameters: Record<string, string>): Record<string, string> {
  const kept: [string, string][] = [];
  for (const [key, value] of Object.entries(parameters).sort(([a], [b]) => compareBytes(a, b))) {
    if (!key.startsWith(reservedPrefix)) kept.push([key, value]);
    else if (!reservedKeys.has(key)) {
      throw new ProvisionError(
        `failed to strip CSI Parameters of prefixed keys: found unknown parameter key "${key}" with reserved namespace csi.storage.k8s.io/`,
        { state: 'finished' },
      );
    }
  }
  return Object.fromEntries(kept);
}

/** What `--extra-create-metadata` adds to the parameters. */
export function extraMetadata(claim: { namespace: string; name: string }, volumeName: string): Record<string, string> {
  return {
    [`${reservedPrefix}pvc/name`]: claim.name,
    [`${reservedPrefix}pvc/namespace`]: claim.namespace,
    [`${reservedPrefix}pv/name`]: volumeName,
  };
}
