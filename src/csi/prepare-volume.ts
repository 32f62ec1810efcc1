/**
 * From a claim to a CreateVolume request. The order of the steps is observable (which error wins, what was already
 * written) and follows the reference.
 */
import type { SecretString } from '../base/secret-string.ts';
import { claimReference } from '../provision/claim-facts.ts';
import type { SecretReference, StorageClass } from '../provision/objects.ts';
import {
  IgnoredError,
  ProvisionError,
  type ProvisionContext,
  type ProvisionOptions,
} from '../provision/provisioner.ts';
import { driverParameters, extraMetadata, fsTypeOf } from './class-parameters.ts';
import { cloneSource, protectCloneSource } from './clone-source.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { dataSourceOf, sourceHandling, type DataSource, type SourceHandling } from './data-source.ts';
import { missingCapability } from './driver-requirements.ts';
import { errorMessage } from './error-message.ts';
import { failingAs } from './failing-as.ts';
import type { CreateVolumeRequest } from './generated/csi/v1/CreateVolumeRequest.ts';
import type { TopologyRequirement } from './generated/csi/v1/TopologyRequirement.ts';
import type { VolumeContentSource } from './generated/csi/v1/VolumeContentSource.ts';
import { readSecret } from './read-secret.ts';
import { isGranted } from './reference-grants.ts';
import { storageRequestBytes } from './requested-capacity.ts';
import { secretKinds, secretReference, type SecretKind } from './secret-reference.ts';
import { protectSnapshot, snapshotHandle } from './snapshot-source.ts';
import { SelectedNodeGoneError } from './topology-hook.ts';
import type { WithWrappedSecrets } from './unary-call.ts';
import { mutableParameters } from './volume-attributes-class.ts';
import { volumeCapabilities } from './volume-capabilities.ts';
import { volumeName } from './volume-name.ts';

/** References of one claim's secrets, those that the class names. */
export type SecretReferences = Readonly<Partial<Record<SecretKind, SecretReference>>>;

/** Everything that is settled before the driver is called. */
export interface PreparedVolume {
  name: string;
  request: WithWrappedSecrets<CreateVolumeRequest>;
  requestedBytes: bigint;
  /** The class after in-tree translation; the very object given when there was none. */
  storageClass: StorageClass;
  /** Empty for block volumes and where none was asked for. */
  fsType: string;
  secretReferences: SecretReferences;
  source: DataSource | undefined;
  volumeAttributesClassName: string | undefined;
  /** Topology is in use: the driver's answer decides where the volume is reachable. */
  topologySupported: boolean;
}

/**
 * Checks the claim, protects its source and reads its secrets. A repeat finds the same request, as long as class,
 * claim and secrets stay the same.
 *
 * @throws {ProvisionError} with the state of the failed step.
 * @throws {IgnoredError} when a populator will provision the volume.
 */
export async function prepareVolume(
  settings: CsiProvisionerOptions,
  options: ProvisionOptions,
  { signal }: ProvisionContext,
): Promise<PreparedVolume> {
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
  const parameters = storageClass.parameters ?? {};
  const fsType = fsTypeOf(parameters, settings.defaultFsType, logger);
  const requestedBytes = await failingAs('finished', () => storageRequestBytes(claim));
  const block = claim.spec.volumeMode === 'Block';
  const capabilities = settings.capabilities();
  const request: WithWrappedSecrets<CreateVolumeRequest> = {
    name,
    capacity_range: { required_bytes: String(requestedBytes) },
    volume_capabilities: volumeCapabilities({
      accessModes: claim.spec.accessModes ?? [],
      block,
      fsType,
      mountFlags: storageClass.mountOptions ?? [],
      singleNodeMultiWriter: capabilities.singleNodeMultiWriter,
    }),
  };
  const contentSource = await contentSourceOf(settings, options, { source, handling, storageClass, signal });
  if (contentSource !== undefined) request.volume_content_source = contentSource;
  const topologySupported = settings.topology !== undefined && capabilities.volumeAccessibilityConstraints;
  if (topologySupported) {
    const requirements = await accessibilityRequirements(settings, options, storageClass);
    if (requirements !== undefined) request.accessibility_requirements = requirements;
  }
  const { secretReferences, secrets } = await resolveSecrets(settings, options, { parameters, name, signal });
  request.secrets = secrets;
  request.parameters = {
    ...driverParameters(parameters),
    ...(settings.extraCreateMetadata ? extraMetadata(namesOf(options), name) : {}),
  };
  if (volumeAttributesClassName !== undefined) {
    request.mutable_parameters = await mutableParameters({
      client: settings.client,
      name: volumeAttributesClassName,
      driverName: settings.driverName,
      signal,
    });
  }
  return {
    name,
    request,
    requestedBytes,
    storageClass,
    fsType: block ? '' : fsType,
    secretReferences,
    source,
    volumeAttributesClassName,
    topologySupported,
  };
}

function namesOf({ claim }: ProvisionOptions): { namespace: string; name: string } {
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

/** Checks the source first; only a source that will be used gets protected. */
async function contentSourceOf(
  settings: CsiProvisionerOptions,
  { claim }: ProvisionOptions,
  from: {
    source: DataSource | undefined;
    handling: SourceHandling | undefined;
    storageClass: StorageClass;
    signal: AbortSignal;
  },
): Promise<VolumeContentSource | undefined> {
  const { client, claims, logger, preventVolumeModeConversion } = settings;
  const { source, handling, storageClass, signal } = from;
  if (source === undefined || handling === undefined) return undefined;
  const describe = (error: unknown): string =>
    `error getting handle for DataSource Type ${source.kind} by Name ${source.name}: ${errorMessage(error)}`;
  if (handling === 'clone') {
    const driverName = storageClass.provisioner;
    const clone = await failingAs(
      'no-change',
      () => cloneSource({ client, claims, claim, source, driverName, signal }),
      describe,
    );
    await failingAs('no-change', () => protectCloneSource(clone.sourceClaim, { client, signal }));
    return { volume: { volume_id: clone.volumeHandle } };
  }
  const handle = await failingAs(
    'no-change',
    () => snapshotHandle({ client, logger, claim, source, storageClass, preventVolumeModeConversion, signal }),
    describe,
  );
  await failingAs('no-change', () => protectSnapshot({ client, logger, snapshot: source, signal }));
  return { snapshot: { snapshot_id: handle } };
}

async function accessibilityRequirements(
  { topology }: CsiProvisionerOptions,
  { claim, selectedNodeName }: ProvisionOptions,
  { allowedTopologies }: StorageClass,
): Promise<TopologyRequirement | undefined> {
  try {
    return await topology?.requirements({
      claim: { uid: claim.metadata.uid ?? '', name: claim.metadata.name },
      allowedTopologies,
      selectedNodeName,
    });
  } catch (error) {
    if (error instanceof SelectedNodeGoneError) {
      throw new ProvisionError(error.message, { state: 'reschedule', cause: error });
    }
    throw new ProvisionError(`error generating accessibility requirements: ${errorMessage(error)}`, {
      state: 'no-change',
      cause: error,
    });
  }
}

/** The provisioner secret is read before the other references are resolved: its absence hides their errors. */
async function resolveSecrets(
  { client, logger }: CsiProvisionerOptions,
  options: ProvisionOptions,
  from: { parameters: Record<string, string>; name: string; signal: AbortSignal },
): Promise<{ secretReferences: SecretReferences; secrets: Record<string, SecretString> }> {
  const { parameters, name, signal } = from;
  const context = {
    volumeName: name,
    claim: { ...namesOf(options), annotations: options.claim.metadata.annotations },
  };
  return failingAs('no-change', async () => {
    const resolved: Partial<Record<SecretKind, SecretReference>> = {};
    let secrets: Record<string, SecretString> = {};
    for (const kind of Object.keys(secretKinds) as SecretKind[]) {
      const reference = secretReference(kind, parameters, context, logger);
      if (reference === undefined) continue;
      resolved[kind] = reference;
      if (kind === 'provisioner') secrets = await readSecret(client, reference, { signal });
    }
    return { secretReferences: resolved, secrets };
  });
}
