/** What a volume is made from. It may be recorded in the cluster, so it is plain data. */
import {
  type GidAllocator,
  ParameterError,
  type Plan,
  ProvisionError,
  type ProvisionOptions,
  quantityBytes,
  type StorageClass,
} from '../../src/index.ts';
import { volumeParameters } from './class-parameters.ts';
import type { Squash } from './ganesha-config.ts';

/** The plan of one volume. */
export interface VolumePlan extends Plan {
  /** The provisioner that has, or will have, the data. */
  readonly identity: string;
  readonly volumeName: string;
  readonly claimUid: string;
  /** Absent in plans of older versions. */
  readonly claim?: { readonly namespace: string; readonly name: string };
  readonly className: string;
  readonly squash: Squash;
  readonly gid?: number;
  /** Requested, in decimal: JSON has no numbers of 64 bits. */
  readonly bytes: string;
  /** For an annotation; empty: none. */
  readonly mountOptions: string;
  /** Of the class. */
  readonly maxExports?: number;
}

/**
 * Checks a claim and its class.
 *
 * @param parts.freeBytes - asked only where the storage is not there yet.
 * @throws {ProvisionError} for what cannot be served; each message begins with `error validating options for volume: `.
 */
export async function planVolume(
  { claim, storageClass, volumeName }: ProvisionOptions,
  parts: { identity: string; gids: GidAllocator; freeBytes: () => Promise<bigint>; signal: AbortSignal },
): Promise<VolumePlan> {
  try {
    const { gid, squash, mountOptions, maxExports } = volumeParameters(storageClass);
    const { selector, dataSource, dataSourceRef, resources } = claim.spec;
    if (selector != null) throw refused('claim.Spec.Selector is not supported');
    if (dataSource != null || dataSourceRef != null) {
      throw refused('claim.Spec.DataSource is not supported: the volume would be empty');
    }
    const bytes = quantityBytes(resources?.requests?.['storage'] ?? 0);
    const available = await parts.freeBytes();
    if (bytes > available) {
      const message = `insufficient available space ${available} bytes to satisfy claim for ${bytes} bytes`;
      throw new ProvisionError(message, { state: 'finished' });
    }
    const { gids, signal, identity } = parts;
    const group = gid === 'allocated' ? await gids.allocate({ storageClass, volumeName }, { signal }) : gid;
    return {
      identity,
      volumeName,
      claimUid: claim.metadata.uid ?? '',
      claim: { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name },
      className: storageClass.metadata.name,
      squash,
      bytes: String(bytes),
      mountOptions: hasMountOptions(storageClass) ? '' : mountOptions,
      ...(group !== undefined && { gid: group }),
      ...(maxExports !== undefined && { maxExports }),
    };
  } catch (error) {
    throw prefixed('error validating options for volume: ', error);
  }
}

/** The error with a text before its message; what it says about retries stays. */
export function prefixed(prefix: string, error: unknown): ProvisionError {
  const message = prefix + (error instanceof Error ? error.message : String(error));
  const known = error instanceof ProvisionError ? error : undefined;
  const infeasible = known?.infeasible ?? error instanceof ParameterError;
  return new ProvisionError(message, { state: known?.state ?? 'finished', infeasible, cause: error });
}

function refused(why: string): ProvisionError {
  return new ProvisionError(why, { state: 'finished', infeasible: true });
}

/** The API server drops an empty list. */
function hasMountOptions({ mountOptions }: StorageClass): boolean {
  return (mountOptions ?? []).length > 0;
}
