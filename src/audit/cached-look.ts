/** A look that uses the cache of PersistentVolumes: of the process that provisions, which has it anyway. */
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import { silentProgress } from '../base/progress.ts';
import { csiStorage, driverMigration } from '../csi/migration/driver-migration.ts';
import { isProvisionerOf, replacedPlugin } from '../csi/migration/in-tree-plugins.ts';
import type { Lister } from '../kube/cache/store.ts';
import { storageIndex } from '../provision/cache/informers.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import { isStuck } from '../provision/intent-journal/read-journal.ts';
import { namesProvisioner } from '../provision/volume-fields.ts';
import { storageHash, storageHashes } from '../provision/cache/cached-volume.ts';
import { storedVolume } from '../provision/volume/stored-volume.ts';
import { CannotReadError } from './cannot-read-error.ts';
import { classify } from './classify.ts';
import { ClusterVolumes, type ClusterVolumesOptions, readClusterVolumes } from './cluster-volumes.ts';
import { driverVolume } from './driver-volume.ts';
import { type ListedVolumes, listDriverVolumes } from './list-driver-volumes.ts';
import { journalOf, type Look, type LookOptions, orMissingRule, remarks, verify } from './look.ts';
import { type PossibleOwner, uidInName } from './owner-index.ts';
import { RecordIndex } from './record-index.ts';
import { asStranger, findOwners, type Stranger } from './stranger.ts';

export interface CachedLookOptions extends Omit<LookOptions, 'progress'> {
  /** All PersistentVolumes; filled, and indexed by their storage. */
  volumes: Lister<PersistentVolume>;
}

/** Max single requests for PersistentVolumes, and to the driver; if more PersistentVolumes are missing, all are listed once. */
const maxRequests = 100;
/** Max volumes without a PersistentVolume: beyond that the memory of a process that has other work to do is not risked. */
const maxStrangers = 100_000;

/** What a look has found in the list of the driver. */
interface Listed extends ListedVolumes {
  count: number;
  /** Hashes of the storage that PersistentVolumes have. */
  hashes: ReadonlySet<number>;
  strangers: Map<string, Stranger>;
}

/**
 * Looks once, as `look` does, with one list of the driver. The cache keeps hashes of ids: a PersistentVolume is read from the API server
 * only where the driver does not list its storage. Leaves out what needs no attention: volumes of other nodes, static volumes that
 * are there, and shared storage.
 *
 * @returns undefined for a driver that does not list its volumes.
 * @throws as `look`.
 */
export async function cachedLook(options: CachedLookOptions): Promise<Look | undefined> {
  const { driver, volumes: cache } = options;
  if (!driver.capabilities.listVolumes) return undefined;
  const lookOptions = { ...options, progress: silentProgress };
  const journal = await journalOf(lookOptions);
  const records = new RecordIndex(journal.records);
  const listed = await readList(options);
  if (listed === undefined) return undefined;
  const { strangers } = listed;
  const volumes = await readMissing(options, listed.hashes);
  await findOwners(strangers, records, () => cachedOwners(options));
  await dropSaved(options, { records, strangers });
  const existence = await verify(lookOptions, { volumes, records, strangers }, maxRequests);
  const { repeated } = listed;
  const classified = classify({ volumes, records, strangers, isListed: true, repeated, existence });
  let persistentVolumes = 0;
  for (const volume of cache.list()) {
    if (sliceSpent()) await nextSlice();
    if (storageHashes(volume).length > 0) persistentVolumes++;
  }
  return {
    ...classified,
    persistentVolumes,
    inUse: listed.count - strangers.size,
    listed: listed.count,
    isListComplete: listed.repeated === 0 && listed.unnamed === 0,
    records: records.all,
    strangers,
    ...remarks(options, { journal, listed }),
  };
}

async function readList({
  driver,
  volumes,
  clock,
  signal,
}: Pick<CachedLookOptions, 'driver' | 'volumes' | 'clock' | 'signal'>): Promise<Listed | undefined> {
  const { handleKey } = storageOf(driver.name);
  const hashes = new Set<number>();
  const strangers = new Map<string, Stranger>();
  const seen = new Set<string>(); // the ids themselves: among many, two may have the same hash
  const take = (id: string): boolean => {
    const hash = storageHash(handleKey(id));
    if (volumes.byIndex(storageIndex, hash).length === 0) return false;
    hashes.add(hash);
    return true;
  };
  const found = await listDriverVolumes({
    calls: driver.calls,
    onStart: () => {
      for (const each of [hashes, strangers, seen]) each.clear();
    },
    onVolume: (id, entry) => {
      const isNew = !seen.has(id);
      seen.add(id);
      if (take(id)) return isNew;
      if (strangers.size >= maxStrangers && !strangers.has(id)) {
        throw new CannotReadError(
          `the driver lists more than ${maxStrangers} volumes that no PersistentVolume has, too many to compare here: use csi-provisioner audit`,
        );
      }
      strangers.set(id, asStranger(driverVolume(entry), strangers.get(id)));
      return isNew;
    },
    clock,
    signal,
  });
  if (found === undefined) return undefined;
  for (const id of strangers.keys()) {
    if (sliceSpent()) await nextSlice();
    if (take(id)) strangers.delete(id); // saved meanwhile
  }
  return { ...found, count: seen.size, hashes, strangers };
}

/** The PersistentVolumes whose storage is not listed, as the API server has them now. */
async function readMissing(options: CachedLookOptions, listed: ReadonlySet<number>): Promise<ClusterVolumes> {
  const { driver, volumes: cache, client, homeOf, signal } = options;
  const names: string[] = [];
  for (const volume of cache.list()) {
    if (sliceSpent()) await nextSlice();
    const hashes = storageHashes(volume);
    if (hashes.length === 0 || hashes.some((hash) => listed.has(hash)) || homeOf(volume) !== 'here') continue;
    names.push(volume.metadata.name);
  }
  const settings: ClusterVolumesOptions = {
    driverName: driver.name,
    migration: driverMigration(driver.name),
    pluginName: replacedPlugin(driver.name)?.name,
    homeOf,
  };
  const way = 'then the next audit succeeds';
  if (names.length > maxRequests) {
    const wanted = new Set(names);
    const isWanted = (name: string): boolean => wanted.has(name);
    return await orMissingRule(
      readClusterVolumes({ ...options, ...settings, isWanted, onCount: () => undefined }),
      way,
    );
  }
  const volumes = new ClusterVolumes(settings);
  for (const name of names) {
    const volume = await orMissingRule(storedVolume(client, name, signal), way);
    if (volume !== undefined) volumes.add(volume);
  }
  return volumes;
}

/** A record that an operator may close leaks nothing if its PersistentVolume is there and the cache only lags behind. */
async function dropSaved(
  { client, signal }: CachedLookOptions,
  { records, strangers }: { records: RecordIndex; strangers: Map<string, Stranger> },
): Promise<void> {
  const left = records.all.filter((each) => isStuck(each) && each.listedIds.length > 0).slice(0, maxRequests);
  for (const { record, listedIds } of left) {
    if ((await storedVolume(client, record.volume.name, signal)) === undefined) continue;
    for (const id of listedIds) strangers.delete(id);
    listedIds.length = 0;
  }
}

/** The cached form of a Bound PersistentVolume lacks its claim, which only the name of the volume may tell. */
function* cachedOwners({ driver, volumes }: CachedLookOptions): Iterable<Omit<PossibleOwner, 'record'>> {
  const isKnown = isProvisionerOf(driver.name);
  for (const volume of volumes.list()) {
    const { name } = volume.metadata;
    const uid = volume.spec.claimRef?.uid ?? uidInName(name);
    if (storageHashes(volume).length > 0)
      yield { uid, volumeName: namesProvisioner({ ...volume, spec: {} }, isKnown) ? name : '' };
  }
}

function storageOf(driverName: string): ReturnType<typeof csiStorage> {
  return csiStorage({ isDriver: (name) => name === driverName, migration: driverMigration(driverName) });
}
