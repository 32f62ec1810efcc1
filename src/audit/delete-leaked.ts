/** Deletes what a stuck record names, never a volume that may be in use. */
import { csiStorage, driverMigration } from '../csi/migration/driver-migration.ts';
import type { IntentRecord } from '../provision/intent-journal/intent-journal.ts';
import { claimWish } from '../provision/claim-fields.ts';
import { readJournal } from '../provision/intent-journal/read-journal.ts';
import { discardRecord } from '../provision/intent-journal/edit-journal.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, type SecretReference } from '../provision/objects.ts';
import { StorageHolders } from '../provision/volume/storage-holders.ts';
import { storedVolume } from '../provision/volume/stored-volume.ts';
import { absentAsUndefined, deletionSecrets } from './deletion-secrets.ts';
import { NotDeletableError } from './deletable-record.ts';
import { isProvisionerOf } from '../csi/migration/in-tree-plugins.ts';
import type { JournalPlace, LookOptions } from './look.ts';
import type { IndexedRecord } from './record-index.ts';

export type DeletionOptions = Omit<LookOptions, 'journal'> & {
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
