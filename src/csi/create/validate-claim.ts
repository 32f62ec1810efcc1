/** Checks that need only the claim, its class and the driver's capabilities. No requests, writes or events. */
import { shortValue } from '../../base/short-value.ts';
import { storageRequestBytes } from '../../provision/claim-fields.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../provision/objects.ts';
import { IgnoredError, ProvisionError } from '../../provision/provisioner.ts';
import { fsTypeOf } from '../class-parameters.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import { missingCapability } from '../driver-info.ts';
import { errorMessage } from '../call-error.ts';
import type {
  _csi_v1_VolumeCapability_AccessMode_Mode as AccessMode,
  VolumeCapability,
} from '../generated/csi/v1/VolumeCapability.ts';
import {
  type ContentSource,
  type DataSource,
  dataSourceOf,
  sourceHandling,
  whyNotGranted,
} from '../sources/data-source.ts';

/** What a claim is checked against; of these only the cache of grants holds objects. */
export type ClaimRules = Pick<
  CsiProvisionerOptions,
  | 'capabilities'
  | 'defaultFsType'
  | 'gates'
  | 'migration'
  | 'referenceGrants'
  | 'volumeNamePrefix'
  | 'volumeNameUuidLength'
>;

/** A claim that passed the checks, and what it requests. */
export interface ValidClaim {
  requestedBytes: bigint;
  capabilities: VolumeCapability[];
  /** The class as the driver understands it. */
  storageClass: StorageClass;
  /** The class names the in-tree plugin that the driver replaced, and was translated. */
  migrated: boolean;
  /** As the class names it, also for block volumes, which have none. */
  fsType: string;
  source: ContentSource | undefined;
}

/** An external volume populator provisions and fills the volume. */
export class PopulatorError extends IgnoredError {
  constructor({ kind }: DataSource) {
    super(
      `data source (${shortValue(kind)}) is not handled by the provisioner, assuming an external populator will provision it`,
    );
  }
}

/**
 * Checks the claim against its class and the driver. The first failure wins, and which one that is belongs to the
 * contract: the order of the checks is the reference's.
 *
 * @param attributesClass - the attributes class that the volume is to be made with.
 * @throws {ProvisionError} state `finished`.
 * @throws {PopulatorError} when a populator will provision the volume.
 */
export function validateClaim(
  rules: ClaimRules,
  {
    claim,
    storageClass: given,
    attributesClass,
  }: { claim: PersistentVolumeClaim; storageClass: StorageClass; attributesClass?: string | undefined },
): ValidClaim {
  const { spec, metadata } = claim;
  const dataSource = grantedSource(rules, claim);
  const storageClass = finishing(
    () => rules.migration?.translateClass(given) ?? given,
    (error) => `failed to translate storage class: ${errorMessage(error)}`,
  );
  const source = dataSource && handledSource(dataSource, metadata.name);
  const has = rules.capabilities();
  const missing = missingCapability(has, {
    snapshotRestore: source?.handling === 'snapshot',
    clone: source?.handling === 'clone',
    attributesClass: attributesClass !== undefined,
  });
  if (missing !== undefined) throw new ProvisionError(missing, { state: 'finished' });
  if (spec.selector !== undefined) throw new ProvisionError('claim Selector is not supported', { state: 'finished' });
  checkVolumeName(rules.volumeNamePrefix, metadata.uid, rules.volumeNameUuidLength);
  const fsType = fsTypeOf(storageClass.parameters ?? {}, rules.defaultFsType);
  const requestedBytes = finishing(() => storageRequestBytes(claim), errorMessage);
  const capabilities = volumeCapabilities({
    accessModes: spec.accessModes ?? [],
    block: spec.volumeMode === 'Block',
    fsType,
    mountFlags: storageClass.mountOptions ?? [],
    singleNodeMultiWriter: has.singleNodeMultiWriter,
  });
  const migrated = storageClass !== given; // as `translateClass` promises
  return { requestedBytes, capabilities, storageClass, migrated, fsType, source };
}

function grantedSource({ gates, referenceGrants }: ClaimRules, claim: PersistentVolumeClaim): DataSource | undefined {
  const source = dataSourceOf(claim, { crossNamespace: gates.crossNamespaceVolumeDataSource });
  if (source === undefined) return undefined;
  const { namespace = '', name } = claim.metadata;
  const refusal = whyNotGranted(referenceGrants, { namespace, name }, source);
  if (refusal !== undefined) throw new ProvisionError(refusal, { state: 'finished' });
  return source;
}

function handledSource(source: DataSource, claimName: string): ContentSource {
  const handling = sourceHandling(source, claimName);
  if (handling === 'populator') throw new PopulatorError(source);
  return { ...source, handling };
}

/** Runs one check whose failure is final for the attempt. */
function finishing<T>(check: () => T, describe: (error: unknown) => string): T {
  try {
    return check();
  } catch (error) {
    throw new ProvisionError(describe(error), { state: 'finished', cause: error });
  }
}

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
function volumeCapabilities(options: {
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

/**
 * Builds the name sent to the driver, which is also the PersistentVolume's. The same claim always gives the same name, so a
 * repeated CreateVolume finds the volume of an earlier, timed-out call (CSI spec, `CreateVolume`, field `name`).
 *
 * @param uidLength - characters of the UID to keep, dashes removed (0 to 32); -1 keeps it whole, with its dashes.
 * @throws {ProvisionError} as `checkVolumeName`.
 */
export function volumeName(prefix: string, claimUid: string | undefined, uidLength: number): string {
  checkVolumeName(prefix, claimUid, uidLength);
  if (uidLength === -1) return `${prefix}-${claimUid}`;
  return `${prefix}-${claimUid.replaceAll('-', '').slice(0, uidLength)}`;
}

/** @throws {ProvisionError} state `finished` for an empty prefix, a claim without UID or a length out of range. */
function checkVolumeName(prefix: string, claimUid: string | undefined, uidLength: number): asserts claimUid is string {
  if (prefix === '') throw new ProvisionError('volume name prefix cannot be of length 0', { state: 'finished' });
  if (claimUid === undefined || claimUid === '') {
    throw new ProvisionError('corrupted PVC object, it is missing UID', { state: 'finished' });
  }
  if (uidLength === -1) return;
  const { length } = claimUid.replaceAll('-', '');
  if (!Number.isInteger(uidLength) || uidLength < 0 || uidLength > length) {
    throw new ProvisionError(
      `volume name UUID length ${uidLength} is out of range: a claim UID has ${length} characters without dashes`,
      { state: 'finished' },
    );
  }
}
