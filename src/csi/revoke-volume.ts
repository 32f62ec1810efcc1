/** Revokes a plan: finds the volume that an earlier attempt may have made, and deletes it. */
import type { Permit } from '../base/permit.ts';
import { isUnservedResource, NotFoundError } from '../kube/client/api-error.ts';
import { ProvisionError } from '../provision/provisioner.ts';
import type { VolumePlan } from './create/volume-plan.ts';
import { callOptions, completeRequest, type ProvisionerSecrets, sendCreateVolume } from './create/create-volume.ts';
import type { CsiProvisionerOptions } from './csi-provisioner-options.ts';
import { deleteProved } from './delete-volume.ts';
import { errorMessage } from './call-error.ts';
import { type BeforeDelete, failingAs } from './error-policy.ts';
import { type KeptSecrets, readSecret } from './secrets/read-secret.ts';

export interface RevokeOptions {
  /** The volume's id, where it is known. */
  handle: string | undefined;
  /** Awaited before DeleteVolume; what it throws passes unchanged. */
  beforeDelete: BeforeDelete;
  signal: AbortSignal;
  permit?: Permit | undefined;
  /** What was read for the plan before: it is used where the Secret is gone, as with the namespace of the claim. */
  secrets: Pick<KeptSecrets, 'get' | 'set'>;
}

type Settings = Pick<CsiProvisionerOptions, 'client' | 'controller'>;

/**
 * Requests the planned volume once more, which gives the id of the one that is there, and then deletes it. Where none is,
 * one is made and deleted: a driver cannot be asked for a volume by name. Resolves when the driver has responded to DeleteVolume with
 * OK. Safe to repeat.
 *
 * @throws {ProvisionError} with what is then known about the driver, and what `beforeDelete` throws.
 */
export async function revokeVolume(settings: Settings, plan: VolumePlan, options: RevokeOptions): Promise<void> {
  const { handle = '', signal, permit } = options;
  const secrets = await secretsToRevoke(settings, plan, options);
  const volumeId = handle === '' ? await findVolume(settings, plan, { secrets, signal, permit }) : handle;
  await deleteProved({ ...options, volumeId }, (recheck) =>
    failingAs(
      'in-background',
      () =>
        settings.controller.deleteVolume({ volume_id: volumeId, secrets }, { ...callOptions(plan, signal), recheck }),
      (error) => `deleting volume ${volumeId} failed: ${errorMessage(error)}`,
    ),
  );
}

async function findVolume(
  settings: Settings,
  plan: VolumePlan,
  { secrets, signal, permit }: { secrets: ProvisionerSecrets; signal: AbortSignal; permit: Permit | undefined },
): Promise<string> {
  const call = callOptions(plan, signal);
  const request = completeRequest(plan, secrets);
  const { volume } = await sendCreateVolume(settings, request, { call, mayReschedule: false, permit });
  const volumeId = volume?.volume_id ?? '';
  if (volumeId !== '') return volumeId;
  throw new ProvisionError(`the driver gave no id for volume ${plan.request.name}: it cannot be deleted`, {
    state: 'in-background',
    afterUnclear: 'undecidable',
  });
}

/** Reads the secret of the plan for a call that makes its volume. @throws {ProvisionError} state `no-change`. */
export function secretsOf(
  { client }: Pick<CsiProvisionerOptions, 'client'>,
  { secretReferences: { provisioner } }: VolumePlan,
  signal: AbortSignal,
): Promise<ProvisionerSecrets> {
  return failingAs('no-change', () => (provisioner === undefined ? {} : readSecret(client, provisioner, { signal })));
}

/** A secret that is gone with its claim, or with their namespace, does not come back. */
async function secretsToRevoke(
  settings: Settings,
  plan: VolumePlan,
  { signal, secrets }: Pick<RevokeOptions, 'signal' | 'secrets'>,
): Promise<ProvisionerSecrets> {
  try {
    const read = await secretsOf(settings, plan, signal);
    secrets.set(plan, read);
    return read;
  } catch (error) {
    if (!(error instanceof ProvisionError) || !isSecretGone(error)) throw error;
    const kept = secrets.get(plan);
    if (kept !== undefined) return kept;
    throw new ProvisionError(error.message, { state: error.state, afterUnclear: 'undecidable', cause: error });
  }
}

/** @param error - of `secretsOf`, which wraps that of `readSecret`. */
function isSecretGone({ cause }: ProvisionError): boolean {
  const response = cause instanceof Error ? cause.cause : undefined;
  return response instanceof NotFoundError && !isUnservedResource(response);
}
