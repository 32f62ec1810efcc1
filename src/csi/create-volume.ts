/** Carries out a plan: everything that has side effects, on the source and at the driver. */
import type { SecretString } from '../base/secret-string.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import { ProvisionError } from '../provision/provisioner.ts';
import { checkResponse, type CreatedVolume } from './check-response.ts';
import { cleanUpVolume } from './cleanup-volume.ts';
import type { VolumePlan } from './create-request.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { errorMessage } from './error-message.ts';
import { createVolumeError } from './error-policy.ts';
import { failingAs } from './failing-as.ts';
import { persistentVolume } from './persistent-volume.ts';
import { protectSource, unprotectSource } from './sources/planned-source.ts';

export interface CreateContext {
  /** Values of the plan's provisioner secret, read for this attempt. */
  secrets: Record<string, SecretString>;
  /** UIDs of claims whose volume the driver may be creating; kept up to date here. */
  inBackground: Set<string>;
  signal: AbortSignal;
}

/**
 * Makes the volume and describes it. Needs neither claim nor class; safe to repeat with the same plan, also by another
 * process.
 *
 * @throws {ProvisionError} with what is then known about the backend.
 */
export async function createVolume(
  settings: CsiProvisionerOptions,
  plan: VolumePlan,
  context: CreateContext,
): Promise<PersistentVolume> {
  const { signal } = context;
  await protectSource(settings, plan.source, signal);
  const created = await callDriver(settings, plan, context);
  const volume = await describe(settings, plan, created);
  decided(settings, plan.claim.uid, context);
  await unprotectSource(settings, plan.source, { claimNamespace: plan.claim.namespace, signal });
  return volume;
}

async function callDriver(
  settings: CsiProvisionerOptions,
  { claim, request, migrated, mayReschedule }: VolumePlan,
  context: CreateContext,
): Promise<CreatedVolume> {
  const { controller, clock, timeoutMs } = settings;
  const { secrets, inBackground, signal } = context;
  const call = { signal, migrated, about: { claim: `${claim.namespace}/${claim.name}` } };
  const response = await controller.createVolume({ ...request, secrets }, call).catch((error: unknown) => {
    const failure = createVolumeError(error, { mayReschedule });
    if (failure.state === 'in-background') inBackground.add(claim.uid);
    // A request that was never sent changes nothing about an earlier one; without one the next attempt is free.
    else if (failure.state !== 'no-change' || !inBackground.has(claim.uid)) decided(settings, claim.uid, context);
    throw failure;
  });
  inBackground.add(claim.uid);
  const created = checkResponse(response, {
    requestedBytes: BigInt(request.capacity_range.required_bytes),
    contentSource: request.volume_content_source !== undefined,
  });
  if (!('problem' in created)) return created;
  const { volumeId, problem, cleanupLabel } = created;
  // The request is repeated in either case, under the same name.
  await failingAs(
    'in-background',
    () => cleanUpVolume({ controller, clock, timeoutMs, volumeId, secrets, call }),
    (error) =>
      `${problem}. ${cleanupLabel} of volume ${request.name} failed, volume is orphaned: ${errorMessage(error)}`,
  );
  throw new ProvisionError(problem, { state: 'in-background' });
}

/** No request for the claim is under way: the next one is computed from its beginning. */
function decided({ topology }: CsiProvisionerOptions, claimUid: string, { inBackground }: CreateContext): void {
  inBackground.delete(claimUid);
  topology?.forget(claimUid);
}

async function describe(
  settings: CsiProvisionerOptions,
  plan: VolumePlan,
  created: CreatedVolume,
): Promise<PersistentVolume> {
  const { migration } = settings;
  const volume = persistentVolume(settings, plan, created);
  if (migration === undefined || !plan.migrated) return volume;
  return failingAs('in-background', () => migration.toInTree(volume));
}
