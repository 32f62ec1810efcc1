/** Reads PersistentVolumes and the driver's list, and tells which volumes only one of them has. */
import type { Clock } from '../base/clock.ts';
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import type { Logger } from '../base/logger.ts';
import type { Progress } from '../base/progress.ts';
import type { Driver } from '../csi/driver.ts';
import { csiStorage, driverMigration } from '../csi/migration/driver-migration.ts';
import { isProvisionerOf, replacedPlugin } from '../csi/migration/in-tree-plugins.ts';
import type { Lister } from '../kube/cache/store.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { Transport } from '../kube/client/transport.ts';
import { storageHash, storageHashes } from '../provision/cache/cached-volume.ts';
import { storageIndex } from '../provision/cache/informers.ts';
import type { PersistentVolume } from '../provision/objects.ts';
import { namesProvisioner } from '../provision/volume-fields.ts';
import { storedVolume } from '../provision/volume/stored-volume.ts';
import { CannotReadError, orMissingRule } from './audit-errors.ts';
import { ClusterVolumes, type ClusterVolumesOptions, readClusterVolumes, type VolumeHome } from './cluster-volumes.ts';
import { listDriverVolumes, type ListedVolumes } from './driver-volumes.ts';
import { asStranger, driverVolume, type PossibleOwner, type Stranger, uidInName, volumeOwners } from './strangers.ts';

export interface ReadVolumesOptions {
  driver: Pick<Driver, 'name' | 'capabilities' | 'calls'>;
  transport: Transport;
  client: KubeClient;
  /** All PersistentVolumes of the process that provisions, filled and indexed by their storage. Absent: they are read. */
  cache?: Lister<PersistentVolume>;
  /** Whether this driver is the one that has a volume, given in CSI form. */
  homeOf: (volume: PersistentVolume) => VolumeHome;
  progress: Progress;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
}

interface ReadVolumes {
  /** Those of the driver; of a cache, those whose storage is not listed. */
  volumes: ClusterVolumes;
  /** Undefined: the driver does not list its volumes. */
  listed: Listed | undefined;
  /** What the driver has and no PersistentVolume, by id. */
  strangers: Map<string, Stranger>;
  /** All PersistentVolumes that may own a stranger. */
  owners: () => Iterable<Omit<PossibleOwner, 'record'>>;
  /** How many the driver has. */
  persistentVolumes: number;
}

interface Listed extends ListedVolumes {
  count: number;
}

/** All PersistentVolumes as the API server has them now, and then the list. */
export async function readAll(options: ReadVolumesOptions): Promise<ReadVolumes> {
  const volumes = await volumesOf(options);
  const strangers = new Map<string, Stranger>();
  const listed = await markListed(options, volumes, strangers);
  await volumes.takeInTree(strangers);
  return { volumes, listed, strangers, owners: () => volumeOwners(volumes), persistentVolumes: volumes.count };
}

function volumesOf(options: ReadVolumesOptions): Promise<ClusterVolumes> {
  const { progress } = options;
  progress.at('Reading PersistentVolumes');
  const onCount = (count: number): void => progress.at(`Reading PersistentVolumes: ${count}`);
  return orMissingRule(
    readClusterVolumes({ ...options, ...clusterVolumesOptions(options), onCount }),
    'then run it again',
  );
}

function clusterVolumesOptions({
  driver: { name },
  homeOf,
}: Pick<ReadVolumesOptions, 'driver' | 'homeOf'>): ClusterVolumesOptions {
  return { driverName: name, migration: driverMigration(name), pluginName: replacedPlugin(name)?.name, homeOf };
}

/** Marks what is listed, and collects what no PersistentVolume has. */
async function markListed(
  { driver, progress, clock, signal }: ReadVolumesOptions,
  volumes: ClusterVolumes,
  strangers: Map<string, Stranger>,
): Promise<Listed | undefined> {
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

/** Max single requests for PersistentVolumes; if more are missing, all are listed once. */
const maxRequests = 100;
/** Max volumes without a PersistentVolume: beyond that the memory of a process that has other work to do is not risked. */
const maxStrangers = 100_000;

/**
 * The list, and of the PersistentVolumes in the cache those that it lacks. The cache keeps hashes of ids: a PersistentVolume is read
 * from the API server only where the driver does not list its storage.
 */
export async function readBesideCache(
  options: ReadVolumesOptions,
  cache: Lister<PersistentVolume>,
): Promise<ReadVolumes> {
  const { listed, hashes, strangers } = await listBesideCache(options, cache);
  const missing =
    listed === undefined
      ? { volumes: new ClusterVolumes(clusterVolumesOptions(options)), persistentVolumes: 0 }
      : await readMissing(options, cache, hashes);
  return { ...missing, listed, strangers, owners: () => cachedOwners(options.driver.name, cache) };
}

/** The list of the driver: hashes of the storage that PersistentVolumes in the cache have, and what none of them has. */
async function listBesideCache(
  { driver, clock, signal }: ReadVolumesOptions,
  cache: Lister<PersistentVolume>,
): Promise<{ listed: Listed | undefined; hashes: ReadonlySet<number>; strangers: Map<string, Stranger> }> {
  const { handleKey } = csiStorage({
    isDriver: (name) => name === driver.name,
    migration: driverMigration(driver.name),
  });
  const hashes = new Set<number>();
  const strangers = new Map<string, Stranger>();
  const seen = new Set<string>(); // the ids themselves: among many, two may have the same hash
  const take = (id: string): boolean => {
    const hash = storageHash(handleKey(id));
    if (cache.byIndex(storageIndex, hash).length === 0) return false;
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
  for (const id of strangers.keys()) {
    if (sliceSpent()) await nextSlice();
    if (take(id)) strangers.delete(id); // saved meanwhile
  }
  return { listed: found && { ...found, count: seen.size }, hashes, strangers };
}

/** The PersistentVolumes whose storage is not listed, as the API server has them now. */
async function readMissing(
  options: ReadVolumesOptions,
  cache: Lister<PersistentVolume>,
  listed: ReadonlySet<number>,
): Promise<{ volumes: ClusterVolumes; persistentVolumes: number }> {
  const { client, homeOf, signal } = options;
  const names = new Set<string>();
  let persistentVolumes = 0;
  for (const volume of cache.list()) {
    if (sliceSpent()) await nextSlice();
    const hashes = storageHashes(volume);
    if (hashes.length === 0) continue;
    persistentVolumes++;
    if (hashes.some((hash) => listed.has(hash)) || homeOf(volume) !== 'here') continue;
    names.add(volume.metadata.name);
  }
  const settings = clusterVolumesOptions(options);
  const way = 'then the next audit succeeds';
  if (names.size > maxRequests) {
    const isWanted = (name: string): boolean => names.has(name);
    const onCount = (): void => undefined;
    const reading = readClusterVolumes({ ...options, ...settings, isWanted, onCount });
    return { volumes: await orMissingRule(reading, way), persistentVolumes };
  }
  const volumes = new ClusterVolumes(settings);
  for (const name of names) {
    const volume = await orMissingRule(storedVolume(client, name, signal), way);
    if (volume !== undefined) volumes.add(volume);
  }
  return { volumes, persistentVolumes };
}

/** The cached form of a Bound PersistentVolume lacks its claim, which only the name of the volume may tell. */
function* cachedOwners(driverName: string, volumes: Lister<PersistentVolume>): Iterable<Omit<PossibleOwner, 'record'>> {
  const isKnown = isProvisionerOf(driverName);
  for (const volume of volumes.list()) {
    const { name } = volume.metadata;
    const uid = volume.spec.claimRef?.uid ?? uidInName(name);
    if (storageHashes(volume).length > 0)
      yield { uid, volumeName: namesProvisioner({ ...volume, spec: {} }, isKnown) ? name : '' };
  }
}
