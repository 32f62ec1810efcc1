/** Fulfils a plan: calls the driver, checks its response and describes the PersistentVolume. */
import { type Permit, whenPermitted } from '../../base/permit.ts';
import type { SecretString } from '../../base/secret-string.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import { ProvisionError } from '../../provision/provisioner.ts';
import { cleanUpVolume } from './cleanup-volume.ts';
import type { VolumePlan } from './volume-plan.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import { errorMessage } from '../error-message.ts';
import { createVolumeError } from '../error-policy.ts';
import { type BeforeDelete, failingAs } from '../failing-as.ts';
import type { CreateVolumeRequest } from '../generated/csi/v1/CreateVolumeRequest.ts';
import type { CreateVolumeResponse__Output } from '../generated/csi/v1/CreateVolumeResponse.ts';
import { type CreatedVolume, persistentVolume } from './persistent-volume.ts';
import { reportMisplaced } from './misplaced-volume.ts';
import { topologyRequirement } from '../topology/planned-topology.ts';
import type { CallOptions, WithWrappedSecrets } from '../unary-call.ts';

/** Values of the plan's provisioner secret, read for this attempt. */
export type ProvisionerSecrets = Record<string, SecretString>;

/** The driver created a volume that does not match the request. It must be deleted again. */
interface UnfitVolume extends CreatedVolume {
  /** What is wrong, as the text of an event. */
  problem: string;
  /** What follows the problem in the error text of a failed cleanup; the two differ in their capital letter. */
  cleanupLabel: string;
}

export interface CreateContext {
  secrets: ProvisionerSecrets;
  /** Awaited before a volume that does not fit the plan is deleted again; what it throws passes unchanged. */
  beforeDelete: BeforeDelete;
  /** Called with the id of a volume that fits. */
  created?: ((volumeId: string) => void) | undefined;
  signal: AbortSignal;
  permit?: Permit | undefined;
}

/**
 * Makes the volume and describes it. Needs neither claim nor class, but expects the source to be protected already. Safe to
 * repeat with the same plan, also by another process.
 *
 * @throws {ProvisionError} with what is then known about the backend, and what `beforeDelete` throws.
 */
export async function createVolume(
  settings: CsiProvisionerOptions,
  plan: VolumePlan,
  context: CreateContext,
): Promise<PersistentVolume> {
  const { secrets, signal, permit } = context;
  const { mayReschedule } = plan;
  const call = callOptions(plan, signal);
  const response = await sendCreateVolume(settings, completeRequest(plan, secrets), { call, mayReschedule, permit });
  const created = checkResponse(response, {
    requestedBytes: BigInt(plan.request.capacity_range.required_bytes),
    contentSource: plan.request.volume_content_source !== undefined,
  });
  if ('problem' in created) await discard(settings, plan, created, context);
  context.created?.(created.volumeId);
  const { migration } = settings;
  const volume = persistentVolume(settings, plan, created);
  reportMisplaced(settings, plan, volume);
  if (migration === undefined || !plan.migrated) return volume;
  return failingAs('in-background', () => migration.toInTree(volume));
}

/** The planned request, with topology and secrets. */
export function completeRequest(
  { request, topology }: VolumePlan,
  secrets: ProvisionerSecrets,
): WithWrappedSecrets<CreateVolumeRequest> {
  return { ...request, ...(topology && { accessibility_requirements: topologyRequirement(topology) }), secrets };
}

/**
 * Calls CreateVolume once the permit is valid: a repeat finds the volume that an earlier call made.
 *
 * @throws {ProvisionError} as `createVolumeError`; state `no-change` where the permit is refused.
 */
export async function sendCreateVolume(
  { controller }: Pick<CsiProvisionerOptions, 'controller'>,
  request: WithWrappedSecrets<CreateVolumeRequest>,
  { call, mayReschedule, permit }: { call: CallOptions; mayReschedule: boolean; permit: Permit | undefined },
): Promise<CreateVolumeResponse__Output> {
  const send = async (): Promise<CreateVolumeResponse__Output> => {
    try {
      return await controller.createVolume(request, call);
    } catch (error) {
      throw createVolumeError(error, { mayReschedule, contentSource: request.volume_content_source !== undefined });
    }
  };
  // errors of `send` have a state; any other one means that the permit was refused, and nothing was sent
  return failingAs('no-change', () => whenPermitted(permit, call.signal, send));
}

/**
 * Compares the driver's response with the request: the size, and that it says it used the content source. A topology that
 * contradicts the request is accepted (CSI spec, `CreateVolumeResponse`).
 *
 * @throws {ProvisionError} state `in-background` for a response without a volume, or without its id, which the CSI spec
 * requires: there is nothing that could be deleted.
 */
function checkResponse(
  response: CreateVolumeResponse__Output,
  wanted: { requestedBytes: bigint; contentSource: boolean },
): CreatedVolume | UnfitVolume {
  const { volume } = response;
  if (volume === undefined) {
    throw new ProvisionError('the response to CreateVolume has no volume', { state: 'in-background' });
  }
  const reported = BigInt(volume.capacity_bytes ?? 0);
  const created: CreatedVolume = {
    volume,
    volumeId: volume.volume_id ?? '',
    capacityBytes: reported === 0n ? wanted.requestedBytes : reported,
  };
  if (created.capacityBytes < wanted.requestedBytes) {
    const problem = `created volume capacity ${reported} less than requested capacity ${wanted.requestedBytes}`;
    return { ...created, problem, cleanupLabel: 'Cleanup' };
  }
  if (wanted.contentSource && volume.content_source === undefined) {
    return { ...created, problem: 'volume content source missing', cleanupLabel: 'cleanup' };
  }
  // no PersistentVolume can be saved without it, so a driver that is mended has to be asked again
  if (created.volumeId === '') {
    throw new ProvisionError('the response to CreateVolume has no volume_id', { state: 'in-background' });
  }
  return created;
}

/** Of every call for a plan. */
export function callOptions({ claim, migrated }: VolumePlan, signal: AbortSignal): CallOptions {
  return { signal, migrated, about: { claim: `${claim.namespace}/${claim.name}` } };
}

/** Deletes a volume that does not fit. The request is repeated in any case, under the same name. */
async function discard(
  { controller, clock, timeoutMs }: CsiProvisionerOptions,
  plan: VolumePlan,
  { volumeId, problem, cleanupLabel }: UnfitVolume,
  { secrets, beforeDelete, signal, permit }: CreateContext,
): Promise<never> {
  const failure =
    volumeId === ''
      ? new Error('the driver gave it no id')
      : await cleanUpVolume({
          controller,
          clock,
          timeoutMs,
          volumeId,
          secrets,
          beforeDelete,
          permit,
          call: callOptions(plan, signal),
        });
  if (failure !== undefined) {
    throw new ProvisionError(
      `${problem}. ${cleanupLabel} of volume ${plan.request.name} failed, volume is orphaned: ${errorMessage(failure)}`,
      { state: 'in-background', cause: failure },
    );
  }
  throw new ProvisionError(problem, { state: 'in-background', afterUnclear: 'absent' });
}
