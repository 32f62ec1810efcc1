/** Deletes what a stuck record names, never a volume that may be in use. */
import type { SecretString } from '../base/secret-string.ts';
import { recordedPlan } from '../csi/create/recorded-plan.ts';
import { csiStorage, driverMigration } from '../csi/migration/driver-migration.ts';
import { isProvisionerOf } from '../csi/migration/in-tree-plugins.ts';
import { readSecret } from '../csi/secrets/read-secret.ts';
import { secretReference } from '../csi/secrets/secret-reference.ts';
import { NotFoundError } from '../kube/client/api-error.ts';
import { claimWish } from '../provision/claim-fields.ts';
import { discardRecord } from '../provision/intent-journal/edit-journal.ts';
import { type IntentRecord, isUnproved } from '../provision/intent-journal/intent-journal.ts';
import { readJournal } from '../provision/intent-journal/read-journal.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type SecretReference,
  type StorageClass,
  storageClasses,
} from '../provision/objects.ts';
import { ProvisionError } from '../provision/provisioner.ts';
import { isNameUnique } from '../provision/revoke/deletion-guard.ts';
import { StorageHolders } from '../provision/volume/storage-holders.ts';
import { storedVolume } from '../provision/volume/stored-volume.ts';
import { NotDeletableError } from './audit-errors.ts';
import type { Finding } from './finding.ts';
import type { JournalPlace, LookOptions } from './look.ts';
import type { IndexedRecord, Stranger } from './strangers.ts';

/** Flag of a deletion whose harmlessness nothing but the operator's knowledge proves. */
export const nobodyKeepsIt = 'nobody-keeps-it';

/**
 * The record because of which a volume may be deleted.
 *
 * @param found - of the last look, with what both looks found.
 * @param options.mayBeUnproved - the operator knows that nobody keeps the volume, also if a PersistentVolume has had it.
 * @throws {NotDeletableError} when no record names it, or in a way that allows no deletion.
 */
export function deletableRecord(
  id: string,
  found: { records: readonly IndexedRecord[]; findings: readonly Finding[]; strangers: ReadonlyMap<string, Stranger> },
  { mayBeUnproved }: { mayBeUnproved: boolean },
): IndexedRecord {
  const naming = found.records.filter(({ record, listedIds }) => record.handle === id || listedIds.includes(id));
  const [indexed, ...others] = naming;
  if (indexed === undefined) {
    const owners = found.strangers.get(id)?.owners ?? [];
    if (owners.length > 0) {
      throw new NotDeletableError(
        'its id only mentions a claim or a volume, so it may be a copy, or belong to another record or PersistentVolume. ' +
          'Find out what it is, and delete it with the tools of the storage system',
      );
    }
    throw new NotDeletableError(
      'no record of the journal names it: it may be in use, or belong to another cluster. Delete it with the tools of the storage system',
    );
  }
  const { record, reportOnly, listedIds, candidateIds } = indexed;
  const why = (): string | undefined => {
    if (others.length > 0) return 'several records name it';
    if (reportOnly !== '') return `its record is stuck: ${reportOnly}. Another cluster may use the volume`;
    if (isUnproved(record) && !mayBeUnproved) {
      return `a PersistentVolume may have had it, and somebody may keep it on purpose. If you know that nobody does, delete it by itself, with --${nobodyKeepsIt}`;
    }
    if (record.phase === 'revoke') return 'the sidecar deletes it once no earlier request can be under way';
    if (record.phase !== 'stuck' && record.phase !== 'delete') return 'the sidecar is creating it';
    const attached = found.strangers.get(id)?.publishedNodes ?? 0;
    if (attached > 0) return `the driver reports it as attached to ${attached} node(s)`;
    const isSettled = found.findings.some((each) => each.volumeId === id && each.record === record.claim.uid);
    if (!isSettled) return 'its record has changed between the two looks: run the audit again';
    if (record.handle === id) return undefined;
    const matches = listedIds.length + candidateIds.length;
    if (matches > 1)
      return `the ids of ${matches} volumes contain its name ${record.volume.name}, or the UID of its claim`;
    return hasUid(record.volume.name, record.claim.uid)
      ? undefined
      : `its record has no id, and its name ${record.volume.name} does not contain the whole UID of the claim, so other volumes may match it`;
  };
  const reason = why();
  if (reason !== undefined) throw new NotDeletableError(reason);
  return indexed;
}

/** The whole UID, with or without dashes: no other volume has it in its name. */
function hasUid(name: string, uid: string): boolean {
  return uid.length >= 32 && isNameUnique(name, uid);
}

type DeletionOptions = Omit<LookOptions, 'journal'> & {
  journal: JournalPlace;
  /** In place of the recorded Secret where that is gone. */
  secret?: SecretReference | undefined;
};

/**
 * Deletes a volume at the driver after a last check against the API server, and has its record discarded. Safe to repeat: drivers return OK
 * for a volume that is gone.
 *
 * @returns what becomes of the record.
 * @throws {NotDeletableError} when the volume may be in use, `CsiCallError` of the driver, and whatever a request throws.
 */
export async function deleteLeaked(
  id: string,
  { record, shard }: IndexedRecord,
  options: DeletionOptions,
): Promise<string> {
  const { driver, signal } = options;
  const secrets = await deletionSecrets(options, record);
  await checkUnused(id, record, options);
  await checkUnwanted(record, options);
  await checkUnchanged(record, options);
  signal.throwIfAborted();
  await driver.calls.deleteVolume({ volume_id: id, secrets }, { signal });
  if (record.phase === 'delete') return 'the sidecar closes its record';
  return await discarded(options, { shard, uid: record.claim.uid });
}

async function discarded(
  { client, journal }: DeletionOptions,
  stored: { shard: number; uid: string },
): Promise<string> {
  try {
    const isThere = await discardRecord({ client, ...journal }, stored);
    return isThere ? 'the sidecar discards its record within a minute' : 'its record is gone';
  } catch (error) {
    const why = (error as Error).message;
    throw new Error(`the volume is deleted, but its record is still to be discarded: ${why}`, { cause: error });
  }
}

/** No PersistentVolume has it, of whatever provisioner. @throws {NotDeletableError} */
async function checkUnused(id: string, record: IntentRecord, options: DeletionOptions): Promise<void> {
  const { driver, transport, client, clock, logger, signal } = options;
  // of any driver: a driver that was installed again under another name has the same storage system
  const storage = csiStorage({ isDriver: () => true, migration: driverMigration(driver.name) });
  const ending = new AbortController();
  const abort = AbortSignal.any([signal, ending.signal]);
  try {
    const holders = new StorageHolders({ transport, storage, abort, clock, logger });
    const { name } = record.volume;
    const holder = (await holders.find({ name, handle: id }, signal)) ?? (await storedVolume(client, name, signal));
    if (holder !== undefined) {
      throw new NotDeletableError(`PersistentVolume ${holder.metadata.name} has its storage or its name`);
    }
  } finally {
    ending.abort(new Error('the search has ended'));
  }
}

/** A claim that still waits for the volume would get one without storage. @throws {NotDeletableError} */
async function checkUnwanted(record: IntentRecord, { client, driver, signal }: DeletionOptions): Promise<void> {
  const { namespace, name } = record.claim;
  const reading = client.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name }, { signal });
  const claim = await absentAsUndefined(reading);
  const isKnownProvisioner = (each: string): boolean => each === driver.name || each === record.volume.provisioner;
  const wish = await claimWish(record, claim, { isKnownProvisioner, qualifies: () => true });
  if (wish === 'wanted' || wish === 'has-it') {
    throw new NotDeletableError(`claim ${namespace}/${name} still needs it: delete the claim first`);
  }
}

/** The confirmation may have taken long to come. @throws {NotDeletableError} */
async function checkUnchanged(
  record: IntentRecord,
  { client, driver, journal, clock }: DeletionOptions,
): Promise<void> {
  const { records } = await readJournal({
    client,
    clock,
    ...journal,
    isKnownProvisioner: isProvisionerOf(driver.name),
  });
  const now = records.find((each) => each.record.claim.uid === record.claim.uid);
  const isSame = now?.reportOnly === '' && now.record.phase === record.phase && now.record.handle === record.handle;
  if (!isSame) throw new NotDeletableError('its record has changed in the meantime: run the audit again');
}

type DriverAndCluster = Pick<LookOptions, 'client' | 'driver' | 'logger' | 'signal'> & {
  secret?: SecretReference | undefined;
};

/**
 * The Secret that the volume would have been created with, or if the record does not say so, that of the class. Without it
 * some drivers return OK and delete nothing. A Secret that is gone is replaced by that of the options.
 */
async function deletionSecrets(options: DriverAndCluster, record: IntentRecord): Promise<Record<string, SecretString>> {
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
async function absentAsUndefined<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof NotFoundError || (error instanceof Error && error.cause instanceof NotFoundError)) {
      return undefined;
    }
    throw error;
  }
}
