import { ProvisionError } from '../../provision/provisioner.ts';
import type {
  _csi_v1_VolumeCapability_AccessMode_Mode as AccessMode,
  VolumeCapability,
} from '../generated/csi/v1/VolumeCapability.ts';

const commonModes: Record<string, AccessMode> = {
  ReadOnlyMany: 'MULTI_NODE_READER_ONLY',
  ReadWriteMany: 'MULTI_NODE_MULTI_WRITER',
};

const plainModes: Record<string, AccessMode> = {
  ...commonModes,
  ReadWriteOnce: 'SINGLE_NODE_WRITER',
  ReadWriteOncePod: 'SINGLE_NODE_WRITER',
};

/** For drivers with SINGLE_NODE_MULTI_WRITER, which distinguish one pod from one node. */
const preciseModes: Record<string, AccessMode> = {
  ...commonModes,
  ReadWriteOnce: 'SINGLE_NODE_MULTI_WRITER',
  ReadWriteOncePod: 'SINGLE_NODE_SINGLE_WRITER',
};

/** The access modes that drivers are ever asked for. */
export const knownAccessModes: readonly string[] = [
  ...new Set([...Object.values(plainModes), ...Object.values(preciseModes)].map(String)),
];

/**
 * One capability per access mode of the claim, in its order (CSI spec, `VolumeCapability`).
 *
 * @throws {ProvisionError} state `finished` for an access mode that has no CSI counterpart.
 */
export function volumeCapabilities(options: {
  accessModes: readonly string[];
  block: boolean;
  fsType: string;
  mountFlags: readonly string[];
  singleNodeMultiWriter: boolean;
}): VolumeCapability[] {
  const { accessModes, block, fsType, mountFlags, singleNodeMultiWriter } = options;
  const modes = singleNodeMultiWriter ? preciseModes : plainModes;
  return accessModes.map((accessMode) => {
    const mode = Object.hasOwn(modes, accessMode) ? modes[accessMode] : undefined;
    if (mode === undefined) {
      throw new ProvisionError(`unsupported AccessMode combination: [${accessMode}]`, { state: 'finished' });
    }
    return {
      access_mode: { mode },
      ...(block ? { block: {} } : { mount: { fs_type: fsType, mount_flags: [...mountFlags] } }),
    };
  });
}
