/**
 * From a claim to a CreateVolume request. The order of the steps is observable (which error wins, what was already
 * written) and follows the reference.
 */
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import type { SecretString } from '../base/secret-string.ts';
import type { SecretReference, StorageClass } from '../provision/objects.ts';
import { ProvisionError, type ProvisionContext, type ProvisionOptions } from '../provision/provisioner.ts';
import { cloneSource, protectCloneSource } from './sources/clone-source.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import type { DataSource, SourceHandling } from './sources/data-source.ts';
import { draftVolume, namesOf, requestParameters, supportsTopology } from './draft-volume.ts';
import { errorMessage } from './error-message.ts';
import { failingAs } from './failing-as.ts';
import type { CreateVolumeRequest } from './generated/csi/v1/CreateVolumeRequest.ts';
import type { TopologyRequirement } from './generated/csi/v1/TopologyRequirement.ts';
import type { VolumeContentSource } from './generated/csi/v1/VolumeContentSource.ts';
import { readSecret } from './secrets/read-secret.ts';
import { secretKinds, secretReference, type SecretKind } from './secrets/secret-reference.ts';
import { protectSnapshot, snapshotHandle } from './sources/snapshot-source.ts';
import { SelectedNodeGoneError } from './topology/topology-hook.ts';
import type { WithWrappedSecrets } from './unary-call.ts';
import { mutableParameters } from './volume-attributes-class.ts';

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
  const draft = await draftVolume(settings, options);
  const { name, storageClass, source, requestedBytes, volumeAttributesClassName } = draft;
  const request: WithWrappedSecrets<CreateVolumeRequest> = {
    name,
    capacity_range: { required_bytes: String(requestedBytes) },
    volume_capabilities: draft.capabilities,
  };
  const contentSource = await contentSourceOf(settings, options, { ...draft, signal });
  if (contentSource !== undefined) request.volume_content_source = contentSource;
  const topologySupported = supportsTopology(settings);
  if (topologySupported) {
    const requirements = await accessibilityRequirements(settings, options, storageClass);
    if (requirements !== undefined) request.accessibility_requirements = requirements;
  }
  const parameters = storageClass.parameters ?? {};
  const { secretReferences, secrets } = await resolveSecrets(settings, options, { parameters, name, signal });
  request.secrets = secrets;
  request.parameters = requestParameters(settings, options, draft);
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
    fsType: options.claim.spec.volumeMode === 'Block' ? '' : draft.fsType,
    secretReferences,
    source,
    volumeAttributesClassName,
    topologySupported,
  };
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
  if (sliceSpent()) await nextSlice(); // a hundred claims at once each go through all nodes
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
