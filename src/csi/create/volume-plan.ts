/**
 * The plan of a volume: what to request from the driver, decided before anything is changed. Planning only reads;
 * `create-volume.ts` sends the request.
 */
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { SecretString } from '../../base/secret-string.ts';
import type {
  PersistentVolumeClaim,
  PersistentVolumeSpec,
  SecretReference,
  StorageClass,
} from '../../provision/objects.ts';
import { ProvisionError, type ProvisionContext, type ProvisionOptions } from '../../provision/provisioner.ts';
import { Planned } from '../../provision/recoverable.ts';
import { driverParameters, extraMetadata, warnDeprecatedFsType } from '../class-parameters.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import { errorMessage } from '../call-error.ts';
import { failingAs } from '../error-policy.ts';
import type { CreateVolumeRequest } from '../generated/csi/v1/CreateVolumeRequest.ts';
import { readSecret } from '../secrets/read-secret.ts';
import { secretKinds, secretReference, type SecretKind } from '../secrets/secret-reference.ts';
import type { PlannedSource } from '../sources/data-source.ts';
import type { PlanWait } from '../plan-waits.ts';
import { planSource } from '../sources/planned-source.ts';
import {
  plannedTopology,
  type PlannedTopology,
  SelectedNodeGoneError,
  supportsTopology,
} from '../topology/planned-topology.ts';
import { validateClaim, type ValidClaim } from './validate-claim.ts';
import { mutableParameters } from '../volume-attributes-class.ts';

/** References of one claim's secrets, those that the class names. */
export type SecretReferences = Readonly<Partial<Record<SecretKind, SecretReference>>>;

/** CreateVolume's arguments but for secrets and topology. Amounts are decimal strings, as in the proto. */
export type PlannedRequest = Omit<
  CreateVolumeRequest,
  'secrets' | 'name' | 'capacity_range' | 'accessibility_requirements'
> & {
  /** The PersistentVolume's name, too. */
  name: string;
  capacity_range: { required_bytes: string };
};

/**
 * A volume as it will be made and described. Plain data without secrets: it survives `JSON.stringify`, and what is
 * needed of claim and class is in it, so that it can be fulfilled when both are gone.
 */
export type VolumePlan = {
  /** Of the driver that makes the volume. */
  driverName: string;
  claim: { namespace: string; name: string; uid: string };
  request: PlannedRequest;
  /** Absent: the driver may choose freely. */
  topology?: PlannedTopology;
  secretReferences: SecretReferences;
  /** The source of the content, which must not be deleted meanwhile. */
  source?: PlannedSource;
  /** The class names the in-tree plugin that the driver replaced: the volume must be in-tree, too. */
  migrated: boolean;
  /** Topology is in use: the driver's response decides where the volume is reachable. */
  topologySupported: boolean;
  /** The scheduler chose the node, and can choose another. */
  mayReschedule: boolean;
  /** Empty for block volumes and where none was asked for. */
  fsType: string;
  /** The parts of the PersistentVolume's spec that claim and class decide. */
  spec: Pick<
    PersistentVolumeSpec,
    'accessModes' | 'mountOptions' | 'persistentVolumeReclaimPolicy' | 'volumeAttributesClassName' | 'volumeMode'
  >;
};

/** A plan, and what was read on the way. */
export interface PlanWithReads {
  plan: VolumePlan;
  secrets: Record<string, SecretString>;
  /** UID of the source claim or snapshot, to detect that it was deleted and recreated. */
  sourceUid?: string;
}

/** How long secrets that were read for a plan are used, in milliseconds: after that they are read again, for they may have been rotated. */
const secretsValidMs = 2_000;

/** A plan, and what belongs to the process that has made it, and is recorded nowhere. */
export class PlannedVolume extends Planned<VolumePlan> {
  readonly sourceUid: string | undefined;
  /** The claim, if the plan leaves out its volume attributes class. */
  readonly withClassLeftOut: PersistentVolumeClaim | undefined;
  #secrets: { values: Record<string, SecretString>; untilMs: number } | undefined;

  constructor(
    { plan, secrets, sourceUid }: PlanWithReads,
    { withClassLeftOut, nowMs }: { withClassLeftOut: PersistentVolumeClaim | undefined; nowMs: number },
  ) {
    super(plan);
    this.sourceUid = sourceUid;
    this.withClassLeftOut = withClassLeftOut;
    this.#secrets = { values: secrets, untilMs: nowMs + secretsValidMs };
  }

  /** The secrets, once. @returns nothing where they were taken already, or were read too long ago. */
  takeSecrets(nowMs: number): Record<string, SecretString> | undefined {
    const kept = this.#secrets;
    this.#secrets = undefined;
    return kept !== undefined && nowMs <= kept.untilMs ? kept.values : undefined;
  }
}

/**
 * Plans a claim's volume: checks the claim, resolves its source, its topology and the secrets, and builds the CreateVolume request and the
 * spec of the PersistentVolume. Writes nothing. A repeat gives the same plan, as long as class, claim and secrets stay the same.
 *
 * @throws {ProvisionError} with the state of the failed step; which of several failures wins is part of the contract.
 * @throws {PopulatorError} when a populator will provision the volume.
 */
export async function planVolume(
  settings: CsiProvisionerOptions,
  options: ProvisionOptions,
  { signal }: ProvisionContext,
): Promise<PlanWithReads> {
  const { claim, selectedNodeName, volumeName: name } = options;
  const attributesClass = await appliedClass(settings, claim, signal);
  const valid = await reading(settings, claim, grantOf(claim), () =>
    validateClaim(settings, { ...options, attributesClass }),
  );
  warnDeprecatedFsType(valid.storageClass.parameters ?? {}, settings.logger);
  const request: PlannedRequest = {
    name,
    capacity_range: { required_bytes: String(valid.requestedBytes) },
    volume_capabilities: valid.capabilities,
  };
  const { source } = valid;
  const clone = source?.handling === 'clone' ? (`claim/${source.namespace}/${source.name}` as const) : undefined;
  const content = await reading(settings, claim, clone, () => planSource(settings, claim, { ...valid, signal }));
  if (content !== undefined) request.volume_content_source = content.volumeContentSource;
  const topologySupported = supportsTopology(settings);
  const topology = topologySupported
    ? await reading(settings, claim, 'nodes', () => planTopology(settings, options, valid.storageClass))
    : undefined;
  const { secretReferences, secrets } = await resolveSecrets(settings, claim, { ...valid, name, signal });
  request.parameters = requestParameters(settings, claim, { ...valid, name });
  if (attributesClass !== undefined) {
    const { client, driverName, attributesClasses: api } = settings;
    request.mutable_parameters = await mutableParameters({ client, api, name: attributesClass, driverName, signal });
  }
  const plan: VolumePlan = {
    driverName: settings.driverName,
    claim: { ...namesOf(claim), uid: claim.metadata.uid ?? '' },
    request,
    ...(topology && { topology }),
    secretReferences,
    ...(content && { source: content.source }),
    migrated: valid.migrated,
    topologySupported,
    mayReschedule: topologySupported && selectedNodeName !== '',
    fsType: claim.spec.volumeMode === 'Block' ? '' : valid.fsType,
    spec: plannedSpec(options, attributesClass),
  };
  return { plan, secrets, ...(content && { sourceUid: content.sourceUid }) };
}

/** Does a step; where it fails because of what it has read, a change of that has the claim tried again. */
function reading<T>(
  { planWaits }: CsiProvisionerOptions,
  { metadata }: PersistentVolumeClaim,
  wait: PlanWait | undefined,
  step: () => T | Promise<T>,
): T | Promise<T> {
  return planWaits === undefined || wait === undefined ? step() : planWaits.during(metadata.uid ?? '', wait, step);
}

/** What allows the claim its source; undefined where no grant is needed. */
function grantOf({ metadata, spec }: PersistentVolumeClaim): PlanWait | undefined {
  const { namespace = '' } = spec.dataSourceRef ?? {};
  return namespace === '' || namespace === metadata.namespace ? undefined : 'grants';
}

/** Name of the attributes class that the volume is made with; undefined where the claim names none, or it is left out. */
async function appliedClass(
  { gates, attributesClasses }: CsiProvisionerOptions,
  { spec, metadata }: PersistentVolumeClaim,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const name = spec.volumeAttributesClassName ?? '';
  if (name === '' || !gates.volumeAttributesClass) return undefined;
  return (await attributesClasses?.appliesTo(metadata.uid ?? '', signal)) === false ? undefined : name;
}

/** @throws {ProvisionError} state `finished` for a reserved key that nobody knows. */
export function requestParameters(
  { extraCreateMetadata }: Pick<CsiProvisionerOptions, 'extraCreateMetadata'>,
  claim: PersistentVolumeClaim,
  { storageClass, name }: Pick<ValidClaim, 'storageClass'> & { name: string },
): Record<string, string> {
  return {
    ...driverParameters(storageClass.parameters ?? {}),
    ...(extraCreateMetadata ? extraMetadata(namesOf(claim), name) : {}),
  };
}

function namesOf({ metadata: { namespace = '', name } }: PersistentVolumeClaim): { namespace: string; name: string } {
  return { namespace, name };
}

function plannedSpec(
  { claim, storageClass }: ProvisionOptions,
  volumeAttributesClassName: string | undefined,
): VolumePlan['spec'] {
  const { accessModes, volumeMode } = claim.spec;
  const { mountOptions = [], reclaimPolicy } = storageClass;
  return {
    ...(accessModes !== undefined && { accessModes: [...accessModes] }),
    ...(mountOptions.length > 0 && { mountOptions: [...mountOptions] }),
    ...(reclaimPolicy !== undefined && { persistentVolumeReclaimPolicy: reclaimPolicy }),
    ...(volumeAttributesClassName !== undefined && { volumeAttributesClassName }),
    ...(volumeMode !== undefined && { volumeMode }),
  };
}

async function planTopology(
  { topology }: CsiProvisionerOptions,
  { claim, selectedNodeName }: ProvisionOptions,
  { allowedTopologies }: StorageClass,
): Promise<PlannedTopology | undefined> {
  if (sliceSpent()) await nextSlice(); // a hundred claims at once each go through all nodes
  try {
    const requirements = await topology?.requirements({
      claimName: claim.metadata.name,
      allowedTopologies,
      selectedNodeName,
    });
    return requirements && plannedTopology(requirements);
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
  claim: PersistentVolumeClaim,
  from: { storageClass: StorageClass; name: string; signal: AbortSignal },
): Promise<{ secretReferences: SecretReferences; secrets: Record<string, SecretString> }> {
  const { storageClass, name, signal } = from;
  const context = {
    volumeName: name,
    claim: { ...namesOf(claim), annotations: claim.metadata.annotations },
  };
  return failingAs('no-change', async () => {
    const resolved: Partial<Record<SecretKind, SecretReference>> = {};
    let secrets: Record<string, SecretString> = {};
    for (const kind of Object.keys(secretKinds) as SecretKind[]) {
      const reference = secretReference(kind, storageClass.parameters ?? {}, context, logger);
      if (reference === undefined) continue;
      resolved[kind] = reference;
      if (kind === 'provisioner') secrets = await readSecret(client, reference, { signal });
    }
    return { secretReferences: resolved, secrets };
  });
}
