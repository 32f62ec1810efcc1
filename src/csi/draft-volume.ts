/** The part of a volume's preparation that only reads what is at hand: nothing is written, and nobody is asked. */
import { claimReference } from '../provision/claim-facts.ts';
import type { StorageClass } from '../provision/objects.ts';
import { IgnoredError, ProvisionError, type ProvisionOptions } from '../provision/provisioner.ts';
import { driverParameters, extraMetadata, fsTypeOf } from './class-parameters.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { dataSourceOf, sourceHandling, type DataSource, type SourceHandling } from './sources/data-source.ts';
import { missingCapability } from './driver-requirements.ts';
import { errorMessage } from './error-message.ts';
import { failingAs } from './failing-as.ts';
import type { VolumeCapability } from './generated/csi/v1/VolumeCapability.ts';
import { isGranted } from './sources/reference-grants.ts';
import { storageRequestBytes } from './requested-capacity.ts';
import { volumeCapabilities } from './volume-capabilities.ts';
import { volumeName } from './volume-name.ts';

/** What the claim and its class alone say of the volume to make. */
export interface VolumeDraft {
  name: string;
  requestedBytes: bigint;
  capabilities: VolumeCapability[];
  /** The class after in-tree translation; the very object given when there was none. */
  storageClass: StorageClass;
  /** As the class asks for, also for block volumes, which have none. */
  fsType: string;
  source: DataSource | undefined;
  handling: SourceHandling | undefined;
  volumeAttributesClassName: string | undefined;
}

/**
 * Checks the claim against its class and the driver. The only trace it leaves is the event about a claim that a
 * populator will fill.
 *
 * @throws {ProvisionError} state `finished`.
 * @throws {IgnoredError} when a populator will provision the volume.
 */
export async function draftVolume(settings: CsiProvisionerOptions, options: ProvisionOptions): Promise<VolumeDraft> {
  const { logger } = settings;
  const { claim } = options;
  const source = grantedSource(settings, options);
  const storageClass = await translatedClass(settings, options.storageClass);
  const handling = handledSource(settings, options, source);
  const volumeAttributesClassName = settings.gates.volumeAttributesClass()
    ? claim.spec.volumeAttributesClassName || undefined
    : undefined;
  checkCapabilities(settings, handling, volumeAttributesClassName !== undefined);
  if (claim.spec.selector !== undefined) {
    throw new ProvisionError('claim Selector is not supported', { state: 'finished' });
  }
  const name = volumeName(settings.volumeNamePrefix, claim.metadata.uid, settings.volumeNameUuidLength);
  const fsType = fsTypeOf(storageClass.parameters ?? {}, settings.defaultFsType, logger);
  const requestedBytes = await failingAs('finished', () => storageRequestBytes(claim));
  const capabilities = volumeCapabilities({
    accessModes: claim.spec.accessModes ?? [],
    block: claim.spec.volumeMode === 'Block',
    fsType,
    mountFlags: storageClass.mountOptions ?? [],
    singleNodeMultiWriter: settings.capabilities().singleNodeMultiWriter,
  });
  return {
    name,
    requestedBytes,
    capabilities,
    storageClass,
    fsType,
    source,
    handling,
    volumeAttributesClassName,
  };
}

/** Whether requests say where the volume shall be. */
export function supportsTopology({ topology, capabilities }: CsiProvisionerOptions): boolean {
  return topology !== undefined && capabilities().volumeAccessibilityConstraints;
}

/** @throws {ProvisionError} state `finished` for a reserved key that nobody knows. */
export function requestParameters(
  { extraCreateMetadata }: CsiProvisionerOptions,
  options: ProvisionOptions,
  { storageClass, name }: VolumeDraft,
): Record<string, string> {
  return {
    ...driverParameters(storageClass.parameters ?? {}),
    ...(extraCreateMetadata ? extraMetadata(namesOf(options), name) : {}),
  };
}

/** Namespace and name of the claim. */
export function namesOf({ claim }: ProvisionOptions): { namespace: string; name: string } {
  return { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name };
}

function grantedSource(settings: CsiProvisionerOptions, options: ProvisionOptions): DataSource | undefined {
  const crossNamespace = settings.gates.crossNamespaceVolumeDataSource;
  const source = dataSourceOf(options.claim, { crossNamespace });
  const { namespace, name } = namesOf(options);
  if (source === undefined || source.namespace === namespace) return source;
  const grants = settings.referenceGrants;
  if (grants !== undefined && isGranted(grants, namespace, source)) return source;
  throw new ProvisionError(
    `accessing ${source.namespace}/${source.name} of ${source.kind} dataSource from ${namespace}/${name} isn't allowed`,
    { state: 'finished' },
  );
}

function translatedClass({ migration }: CsiProvisionerOptions, storageClass: StorageClass): Promise<StorageClass> {
  return failingAs(
    'finished',
    () => migration?.translateClass(storageClass) ?? storageClass,
    (error) => `failed to translate storage class: ${errorMessage(error)}`,
  );
}

function handledSource(
  { recorder }: CsiProvisionerOptions,
  { claim }: ProvisionOptions,
  source: DataSource | undefined,
): SourceHandling | undefined {
  if (source === undefined) return undefined;
  const handling = sourceHandling(source, claim.metadata.name);
  if (handling !== 'populator') return handling;
  const message = 'Assuming an external populator will provision the volume';
  recorder.event(claimReference(claim), 'Normal', 'Provisioning', message);
  throw new IgnoredError(
    `data source (${source.kind}) is not handled by the provisioner, assuming an external populator will provision it`,
  );
}

function checkCapabilities(
  { capabilities }: CsiProvisionerOptions,
  handling: SourceHandling | undefined,
  attributesClass: boolean,
): void {
  const missing = missingCapability(capabilities(), {
    snapshotRestore: handling === 'snapshot',
    clone: handling === 'clone',
    attributesClass,
  });
  if (missing !== undefined) throw new ProvisionError(missing, { state: 'finished' });
}
