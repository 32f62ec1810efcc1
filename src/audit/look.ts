import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Progress } from '../base/progress.ts';
import type { Driver } from '../csi/driver.ts';
import { driverMigration } from '../csi/migration/driver-migration.ts';
import { isProvisionerOf, replacedPlugin } from '../csi/migration/in-tree-plugins.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import { ForbiddenError } from '../kube/client/api-error.ts';
import type { Transport } from '../kube/client/transport.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import { readJournal, type ReadJournal } from '../provision/intent-journal/read-journal.ts';
import { CannotReadError } from './cannot-read-error.ts';
import { classify, type Classified, isMissing } from './classify.ts';
import { type ClusterVolumes, readClusterVolumes, type VolumeHome } from './cluster-volumes.ts';
import { driverVolume } from './driver-volume.ts';
import { type ListedVolumes, listDriverVolumes } from './list-driver-volumes.ts';
import { type IndexedRecord, RecordIndex } from './record-index.ts';
import { asStranger, findOwners, type Stranger, volumeOwners } from './stranger.ts';
import { type Existence, verifyMissing } from './verify-missing.ts';

/** Where the journal is. */
export interface JournalPlace {
  namespace: string;
  lockName: string;
}

export interface LookOptions {
  driver: Pick<Driver, 'name' | 'capabilities' | 'calls'>;
  transport: Transport;
  client: KubeClient;
  /** Undefined: the sidecar keeps none. */
  journal: JournalPlace | undefined;
  /** Whether this driver is the one that has a volume, given in CSI form. */
  homeOf: (volume: PersistentVolume) => VolumeHome;
  progress: Progress;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
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

/**
 * Looks once. What changes meanwhile may be seen in one place and not yet, or no longer, in another.
 *
 * @throws {CannotReadError} naming the permission or the call that is missing, and whatever a request throws.
 */
export async function look(options: LookOptions): Promise<Look> {
  const journal = await journalOf(options);
  const volumes = await volumesOf(options);
  const records = new RecordIndex(journal.records);
  const strangers = new Map<string, Stranger>();
  const listed = await markListed(options, volumes, strangers);
  await volumes.takeInTree(strangers);
  await findOwners(strangers, records, () => volumeOwners(volumes));
  const existence = await verify(options, { volumes, records, strangers });
  const isListed = listed !== undefined;
  const { repeated = 0 } = listed ?? {};
  const classified = classify({ volumes, records, strangers, isListed, repeated, existence });
  return {
    ...classified,
    persistentVolumes: volumes.count,
    listed: listed?.count,
    isListComplete: listed?.repeated === 0 && listed.unnamed === 0,
    records: records.all,
    strangers,
    ...remarks(options, { journal, listed }),
  };
}

/** @throws {CannotReadError} with the rule that is missing. */
export async function journalOf({ driver, journal, client, clock, progress }: LookOptions): Promise<ReadJournal> {
  if (journal === undefined) return { exists: true, shards: [], missing: [], drain: '', records: [], unreadable: [] };
  progress.at('Reading the intent journal');
  const reading = readJournal({ client, clock, ...journal, isKnownProvisioner: isProvisionerOf(driver.name) });
  return await orMissingRule(reading, 'or use --intent-journal=off if there is none');
}

async function volumesOf(options: LookOptions): Promise<ClusterVolumes> {
  const { driver, progress } = options;
  progress.at('Reading PersistentVolumes');
  const reading = readClusterVolumes({
    ...options,
    driverName: driver.name,
    migration: driverMigration(driver.name),
    pluginName: replacedPlugin(driver.name)?.name,
    onCount: (count) => progress.at(`Reading PersistentVolumes: ${count}`),
  });
  return await orMissingRule(reading, 'then run it again');
}

/** Marks what is listed, and collects what no PersistentVolume has. */
async function markListed(
  { driver, progress, clock, signal }: LookOptions,
  volumes: ClusterVolumes,
  strangers: Map<string, Stranger>,
): Promise<(ListedVolumes & { count: number }) | undefined> {
  if (!driver.capabilities.listVolumes) return undefined;
  let count = 0;
  progress.at("Reading the driver's volumes");
  const found = await listDriverVolumes({
    calls: driver.calls,
    onStart: () => {
      count = 0;
      strangers.clear();
      for (const first of volumes.handles()) mark(volumes, first.handle, false);
    },
    onVolume: (id, entry) => {
      const known = volumes.with(id);
      const before = strangers.get(id);
      const isRepeated = known?.isListed ?? before !== undefined;
      if (known === undefined) strangers.set(id, asStranger(driverVolume(entry), before));
      else mark(volumes, id, true);
      if (!isRepeated) count++;
      return !isRepeated;
    },
    onPage: () => progress.at(`Reading the driver's volumes: ${count}`),
    clock,
    signal,
  });
  return found && { ...found, count };
}

function mark(volumes: ClusterVolumes, handle: string, isListed: boolean): void {
  for (let each = volumes.with(handle); each !== undefined; each = each.next) each.isListed = isListed;
}

/**
 * Asks for what is not listed: of PersistentVolumes, and of records that name no other volume.
 *
 * @param maxRequests - what exceeds it is taken as not asked. Default: no limit.
 */
export async function verify(
  { driver, progress, signal }: Pick<LookOptions, 'driver' | 'progress' | 'signal'>,
  found: {
    volumes: ClusterVolumes;
    records: RecordIndex;
    strangers: Map<string, Stranger>;
  },
  maxRequests = Infinity,
): Promise<Map<string, Existence>> {
  if (!driver.capabilities.getVolume) return new Map();
  const { volumes, records, strangers } = found;
  const ofVolumes = [...volumes.handles()].filter(isMissing).map(({ handle }) => handle);
  const ofRecords = records.all.map(({ record: { handle = '' } }) => handle);
  const unknown = ofRecords.filter((id) => id !== '' && !strangers.has(id) && volumes.with(id) === undefined);
  const missing = [...new Set([...ofVolumes, ...unknown])].slice(0, maxRequests);
  return await verifyMissing(missing, {
    calls: driver.calls,
    onThere: (id, answer) => {
      if (volumes.with(id) !== undefined) return;
      strangers.set(id, asStranger(driverVolume(answer)));
      for (const record of records.naming(id)) record.listedIds.push(id);
    },
    onCount: (count) => progress.at(`Asking the driver for single volumes: ${count} of ${missing.length}`),
    signal,
  });
}

export function remarks(
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

/** @throws {CannotReadError} with the rule that is missing. */
export async function orMissingRule<T>(response: Promise<T>, way: string): Promise<T> {
  try {
    return await response;
  } catch (error) {
    if (!(error instanceof ForbiddenError)) throw error;
    const rule = error.isAdmission ? '' : `. Add this rule to a role of yours, ${way}:\n${error.missingRule}`;
    throw new CannotReadError(`${error.message}${rule}`, { cause: error });
  }
}
