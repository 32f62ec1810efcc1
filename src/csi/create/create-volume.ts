/** Fulfils a plan: calls the driver, checks its response and describes the PersistentVolume. */
import type { Clock } from '../../base/clock.ts';
import { NotPermittedError, type Permit, whenPermitted } from '../../base/permit.ts';
import type { SecretString } from '../../base/secret-string.ts';
import { shortValue } from '../../base/short-value.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { claimReference, selectedNode } from '../../provision/claim-fields.ts';
import { misplacedReason } from '../../provision/event-reasons.ts';
import type { NodeSelectorTerm, PersistentVolume } from '../../provision/objects.ts';
import { ProvisionError } from '../../provision/provisioner.ts';
import type { ControllerCalls } from '../csi-calls.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import { deleteProved } from '../delete-volume.ts';
import { errorMessage } from '../call-error.ts';
import { type BeforeDelete, createVolumeError, failingAs } from '../error-policy.ts';
import type { CreateVolumeRequest } from '../generated/csi/v1/CreateVolumeRequest.ts';
import type { CreateVolumeResponse__Output } from '../generated/csi/v1/CreateVolumeResponse.ts';
import { labelsText, selectsNode } from '../topology/topology-term.ts';
import { topologyRequirement } from '../topology/planned-topology.ts';
import type { CallOptions, WithWrappedSecrets } from '../unary-call.ts';
import { type CreatedVolume, persistentVolume } from './persistent-volume.ts';
import type { VolumePlan } from './volume-plan.ts';

/** Values of the plan's provisioner secret, read for this attempt. */
export type ProvisionerSecrets = Record<string, SecretString>;

/** The driver created a volume that does not match the request. It must be deleted again. */
interface UnfitVolume extends CreatedVolume {
  /** What is wrong, as the text of an event. */
  problem: string;
  /** What follows the problem in the error text of a failed cleanup; the two differ in their capital letter. */
  cleanupLabel: string;
}

interface CreateContext {
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
  const send = async (recheck: () => void): Promise<CreateVolumeResponse__Output> => {
    try {
      return await controller.createVolume(request, { ...call, recheck });
    } catch (error) {
      if (error instanceof NotPermittedError) throw error;
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

/** Max calls before a volume counts as orphaned. */
const attempts = 5;

/**
 * Deletes a volume that was just made and does not fit the request: up to five calls without a pause, all within one timeout.
 *
 * @returns what the last call failed with; undefined: the volume is deleted.
 * @throws what `beforeDelete` throws.
 */
async function cleanUpVolume(options: {
  controller: ControllerCalls;
  clock: Clock;
  timeoutMs: number;
  volumeId: string;
  secrets: Record<string, SecretString>;
  /** Awaited before each call: the one before may have taken long, and others may use the volume by now. What it throws passes. */
  beforeDelete: BeforeDelete;
  permit?: Permit | undefined;
  /** Of every call, but for its deadline. */
  call: CallOptions;
}): Promise<unknown> {
  const { controller, clock, volumeId, secrets, call } = options;
  const end = clock.monotonicMs() + options.timeoutMs;
  for (let attempt = 1; ; attempt += 1) {
    let failure: unknown;
    await deleteProved({ ...options, signal: call.signal }, async (recheck) => {
      const timeoutMs = end - clock.monotonicMs();
      failure = await controller.deleteVolume({ volume_id: volumeId, secrets }, { ...call, timeoutMs, recheck }).then(
        () => undefined,
        (error: unknown) => error,
      );
    });
    if (failure === undefined || attempt >= attempts) return failure;
  }
}

/**
 * Reports a volume that the selected node cannot use, by the labels of the node: its Pod cannot start there. The volume is kept, since
 * a driver may return another topology than the requested ones (CSI spec, `CreateVolumeResponse`).
 *
 * @param volume - in CSI form, whose labels are those that the scheduler compares.
 */
function reportMisplaced(
  { topology, claims, recorder, logger }: CsiProvisionerOptions,
  plan: Pick<VolumePlan, 'claim'>,
  volume: PersistentVolume,
): void {
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const claim = claims.get(objectKey({ metadata: plan.claim }));
  if (terms.length === 0 || claim?.metadata.uid !== plan.claim.uid) return;
  const node = selectedNode(claim);
  const labels = node === '' ? undefined : topology?.labelsOf?.(node);
  if (labels === undefined || selectsNode(terms, labels)) return; // no node was selected, or it is gone
  const keys = new Set(terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)));
  const having = labelsText(Object.fromEntries(Object.entries(labels).filter(([key]) => keys.has(key))));
  const places = terms.map(termText).join(' or ');
  logger.warn(
    { claim: objectKey(claim), volume: volume.metadata.name, node, accessibleFrom: places, nodeLabels: having },
    'The selected node cannot use the volume that the driver created',
  );
  const message =
    `The driver created volume ${volume.metadata.name} where the selected node ${shortValue(node)} cannot use it: it can be used on nodes ` +
    `with ${shortValue(places)}, and this node has ${shortValue(having)}. If the class has allowedTopologies, name all topology keys of the driver ` +
    'in each term, or set --strict-topology; then recreate the claim';
  recorder.event(claimReference(claim), 'Warning', misplacedReason, message, { once: true, logged: true });
}

function termText({ matchExpressions = [] }: NodeSelectorTerm): string {
  return labelsText(Object.fromEntries(matchExpressions.map(({ key, values = [] }) => [key, values.join('|')])));
}
