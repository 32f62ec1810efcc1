/** Looks at driver, cluster and journal, and compares them. */
import { isProvisionerOf } from '../csi/migration/in-tree-plugins.ts';
import { isStuck, readJournal, type ReadJournal } from '../provision/intent-journal/read-journal.ts';
import { storedVolume } from '../provision/volume/stored-volume.ts';
import { orMissingRule } from './audit-errors.ts';
import { type ListedVolumes, verify } from './driver-volumes.ts';
import { classify, type Classified } from './finding.ts';
import { readAll, readBesideCache, type ReadVolumesOptions } from './read-volumes.ts';
import { findOwners, type IndexedRecord, RecordIndex, type Stranger } from './strangers.ts';

/** Where the journal is. */
export interface JournalPlace {
  namespace: string;
  lockName: string;
}

export interface LookOptions extends ReadVolumesOptions {
  /** Undefined: the sidecar keeps none. */
  journal: JournalPlace | undefined;
}

/** What one look at driver, cluster and journal found. */
export interface Look extends Classified {
  persistentVolumes: number;
  /** Volumes that the driver lists; undefined: it does not list them. */
  listed: number | undefined;
  /** It lists them, and nothing in the list says that others may be missing. */
  isListComplete: boolean;
  records: readonly IndexedRecord[];
  /** What the driver has and no PersistentVolume, by id. */
  strangers: ReadonlyMap<string, Stranger>;
  /** What could not be checked, where anything that needs attention goes unreported. */
  incomplete: string[];
  /** Limits of the result that do not make it incomplete. */
  notes: string[];
}

/** With a cache: max records whose PersistentVolume is read again, and max volumes that the driver is asked for; further ones count as not asked. */
const maxRequests = 100;

/**
 * Looks once. What changes meanwhile may be seen in one place and not yet, or no longer, in another. With a cache it leaves out
 * what needs no attention: volumes of other nodes, static volumes that are there, and shared storage.
 *
 * @throws {CannotReadError} naming the permission or the call that is missing, and whatever a request throws.
 */
export async function look(options: LookOptions): Promise<Look> {
  const { cache } = options;
  const journal = await journalOf(options);
  const records = new RecordIndex(journal.records);
  const read = cache === undefined ? await readAll(options) : await readBesideCache(options, cache);
  const { volumes, listed, strangers, owners, persistentVolumes } = read;
  await findOwners(strangers, records, owners);
  if (cache !== undefined) await dropSaved(options, { records, strangers });
  const existence = await verify(
    options,
    { volumes, records, strangers },
    cache === undefined ? Infinity : maxRequests,
  );
  const { repeated = 0 } = listed ?? {};
  const isListed = listed !== undefined;
  const classified = classify({ volumes, records, strangers, isListed, repeated, existence });
  return {
    ...classified,
    inUse: cache === undefined ? classified.inUse : (listed?.count ?? 0) - strangers.size,
    persistentVolumes,
    listed: listed?.count,
    isListComplete: listed?.repeated === 0 && listed.unnamed === 0,
    records: records.all,
    strangers,
    ...remarks(options, { journal, listed }),
  };
}

/** @throws {CannotReadError} with the rule that is missing. */
async function journalOf({ driver, journal, client, clock, progress }: LookOptions): Promise<ReadJournal> {
  if (journal === undefined) return { exists: true, shards: [], missing: [], drain: '', records: [], unreadable: [] };
  progress.at('Reading the intent journal');
  const reading = readJournal({ client, clock, ...journal, isKnownProvisioner: isProvisionerOf(driver.name) });
  return await orMissingRule(reading, 'or use --intent-journal=off if there is none');
}

/** A record that an operator may close leaks nothing if its PersistentVolume is there and the cache only lags behind. */
async function dropSaved(
  { client, signal }: LookOptions,
  { records, strangers }: { records: RecordIndex; strangers: Map<string, Stranger> },
): Promise<void> {
  const left = records.all.filter((each) => isStuck(each) && each.listedIds.length > 0).slice(0, maxRequests);
  for (const { record, listedIds } of left) {
    if ((await storedVolume(client, record.volume.name, signal)) === undefined) continue;
    for (const id of listedIds) strangers.delete(id);
    listedIds.length = 0;
  }
}

function remarks(
  { driver, journal: place }: Pick<LookOptions, 'driver' | 'journal'>,
  found: { journal: ReadJournal; listed: ListedVolumes | undefined },
): Pick<Look, 'incomplete' | 'notes'> {
  const { listed, journal } = found;
  const incomplete = journal.unreadable.map((each) => `${each} of the intent journal cannot be read by this version`);
  const notes: string[] = [];
  if (place !== undefined && !journal.exists) {
    incomplete.push(
      `namespace ${place.namespace} has no intent journal ${place.lockName}-journal-0: name its namespace with ` +
        '--leader-election-namespace, or use --intent-journal=off if the sidecar keeps none',
    );
  }
  const reported = driver.capabilities.listVolumes
    ? 'reports LIST_VOLUMES, but does not implement it'
    : 'lacks LIST_VOLUMES';
  if (listed === undefined && driver.capabilities.getVolume) {
    notes.push(
      `the driver ${reported}: its volumes were requested one by one, and storage without a PersistentVolume is not found`,
    );
  } else if (listed === undefined) {
    incomplete.push(`the driver ${reported}, and lacks GET_VOLUME: lost and unexplained storage cannot be detected`);
  }
  if ((listed?.unnamed ?? 0) > 0) notes.push(`the driver lists ${listed?.unnamed} volume(s) without an id`);
  if ((listed?.repeated ?? 0) > 0) notes.push(`the driver listed ${listed?.repeated} volume(s) twice`);
  if (place === undefined)
    notes.push('without an intent journal, volumes that are just being created count as unexplained');
  return { incomplete, notes };
}
