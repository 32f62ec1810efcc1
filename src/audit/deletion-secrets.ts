import type { SecretString } from '../base/secret-string.ts';
import { driverMigration } from '../csi/migration/driver-migration.ts';
import { recordedPlan } from '../csi/create/recorded-plan.ts';
import { readSecret } from '../csi/secrets/read-secret.ts';
import { secretReference } from '../csi/secrets/secret-reference.ts';
import { NotFoundError } from '../kube/client/api-error.ts';
import type { IntentRecord } from '../provision/intent-journal/intent-journal.ts';
import { type SecretReference, type StorageClass, storageClasses } from '../provision/objects.ts';
import { ProvisionError } from '../provision/provisioner.ts';
import { NotDeletableError } from './deletable-record.ts';
import type { LookOptions } from './look.ts';

type DriverAndCluster = Pick<LookOptions, 'client' | 'driver' | 'logger' | 'signal'> & {
  secret?: SecretReference | undefined;
};

/**
 * The Secret that the volume would have been created with, or if the record does not say so, that of the class. Without it
 * some drivers return OK and delete nothing. A Secret that is gone is replaced by that of the options.
 */
export async function deletionSecrets(
  options: DriverAndCluster,
  record: IntentRecord,
): Promise<Record<string, SecretString>> {
  const { client, signal, secret } = options;
  const reference = await referenceOf(options, record);
  if (reference === undefined) return {};
  const secrets = await absentAsUndefined(readSecret(client, reference, { signal }));
  if (secrets !== undefined) return secrets;
  const text = `${reference.namespace}/${reference.name}`;
  if (secret === undefined) {
    throw new NotDeletableError(
      `its Secret ${text} is gone, and without it the driver may delete nothing. Name another one with ` +
        '--secret NAMESPACE/NAME, or delete the volume with the tools of the storage system',
    );
  }
  const others = await absentAsUndefined(readSecret(client, secret, { signal }));
  if (others !== undefined) return others;
  throw new NotDeletableError(
    `its Secret ${text} is gone, and so is the one of --secret, ${secret.namespace}/${secret.name}`,
  );
}

async function referenceOf(
  { client, driver, logger, signal }: DriverAndCluster,
  { plan, volume, claim }: IntentRecord,
): Promise<SecretReference | undefined> {
  try {
    return recordedPlan(plan, driver.name).secretReferences.provisioner;
  } catch (error) {
    if (!(error instanceof ProvisionError)) throw error;
  }
  const name = { name: volume.className };
  const found = await absentAsUndefined(client.get<StorageClass>(storageClasses, name, { signal }));
  if (found === undefined) {
    throw new NotDeletableError(
      `which secret the driver needs is not known: its record does not say, and its StorageClass ${volume.className} is gone. ` +
        'Delete it with the tools of the storage system',
    );
  }
  const storageClass = driverMigration(driver.name)?.translateClass(found) ?? found;
  return secretReference('provisioner', storageClass.parameters ?? {}, { volumeName: volume.name, claim }, logger);
}

/** @param response - may fail with the API's error, or with one around it. */
export async function absentAsUndefined<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof NotFoundError || (error instanceof Error && error.cause instanceof NotFoundError)) {
      return undefined;
    }
    throw error;
  }
}
