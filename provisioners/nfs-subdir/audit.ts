/** `nfs-subdir-external-provisioner audit`: the directories of the export against PersistentVolumes and the journal. */
import {
  type KubeClient,
  NotDirectoryError,
  type OpenedDirectory,
  type PersistentVolume,
  persistentVolumes,
  removeTree,
  errnoOf,
} from '../../src/index.ts';
import { folderBytes } from '../shared-audit/folder-size.ts';
import { type OpenPlans, openPlans } from '../shared-audit/open-plans.ts';
import type { AuditedStorage, StorageFinding, StorageLook } from '../shared-audit/storage-audit.ts';
import { NotDeletableError } from '../shared-audit/storage-audit-command.ts';
import { type ArchiveRecord, archiveRecords, forgetArchive, inodeOf, recordsFolder } from './archives.ts';
import { isArchiveDirectory } from './class-parameters.ts';
import { describedUse, insideKey, useOf } from './directory-use.ts';
import { isMadeBy } from './own-volumes.ts';
import { isOfFileServer } from './reserved-names.ts';
import type { Settings } from './settings.ts';
import type { Share } from './share.ts';
import { isReservedName } from './share-identity.ts';
import { pathIfBelow, relation, type VolumePath, withParents } from './volume-path.ts';

export interface SubdirAuditOptions {
  settings: Settings;
  /** Of the lock. Undefined without leader election: then there is no journal. */
  lock: { namespace: string; name: string } | undefined;
  client: KubeClient;
  share: Share;
}

/** A directory that a volume uses, or may use, of whatever provisioner. */
interface Held {
  readonly path: VolumePath;
  readonly name: string;
}

interface Seen {
  held: readonly Held[];
  /** Volumes of this provisioner. */
  own: readonly Held[];
  /** Volumes of which is not known which directories they use: no directory counts as unclaimed. */
  unclear: readonly string[];
  /** Directories of volumes in progress. */
  plans: readonly VolumePath[];
  /** Why these are not known; undefined: they are. */
  unknown: string | undefined;
}

export class SubdirAudit implements AuditedStorage {
  readonly #options: SubdirAuditOptions;
  readonly name: string;

  constructor(options: SubdirAuditOptions) {
    const { provisionerName, server, sharePath } = options.settings;
    this.#options = options;
    this.name = `${provisionerName} on ${server}:${sharePath}`;
  }

  async look(signal: AbortSignal): Promise<StorageLook> {
    return await this.#options.share.within(async (root) => {
      const before = await this.#seen(signal); // before the directories: one that is created meanwhile is ruled out by the second look
      const findings: StorageFinding[] = [];
      const archives = new Map<string, ArchiveRecord>();
      for await (const record of archiveRecords(root)) archives.set(idOf(record.archive), record);
      const volumes = new Set(before.held.map(({ name }) => name)).size;
      const counts = { directories: 0, PersistentVolumes: volumes, records: before.plans.length };
      for await (const { path, folder } of strangers(root, before)) {
        counts.directories++;
        const found = await describe(path, folder, archives.get(idOf(path)));
        if (before.unclear.length === 0) findings.push(found);
        else if (found.state === archiveState) findings.push({ ...found, isDeletable: false });
      }
      for (const { path, name } of before.own) {
        if ((await inodeOf(root, path).catch(unlessNoDirectory)) === undefined) findings.push(lost(path, name));
      }
      return { findings, incomplete: incompleteOf(before), counts };
    }, signal);
  }

  async bytesOf({ id }: StorageFinding, signal: AbortSignal): Promise<number | undefined> {
    return await this.#options.share.within(async (root) => {
      await using folder = await root.walk(id.split('/'));
      return await folderBytes(folder, signal);
    }, signal);
  }

  async delete({ id, state }: StorageFinding, signal: AbortSignal): Promise<string> {
    const path = id.split('/');
    if (isKept(path)) throw new NotDeletableError('it belongs to the file server, or to the provisioner itself');
    return await this.#options.share.within(async (root) => {
      const seen = await this.#seen(signal);
      const { held, plans } = seen;
      const [unknown] = incompleteOf(seen);
      if (unknown !== undefined) throw new NotDeletableError(unknown);
      const holder = held.find((each) => relation(folded(path), folded(each.path)) !== 'apart');
      if (holder !== undefined)
        throw new NotDeletableError(`PersistentVolume ${holder.name} uses it, or a directory in it or above it`);
      if (plans.some((each) => relation(path, each) !== 'apart')) {
        throw new NotDeletableError('the journal has a record of a volume that is being created there');
      }
      await using parent = await root.walk(path.slice(0, -1));
      signal.throwIfAborted();
      await removeTree(parent, path.at(-1) ?? '', { signal });
      for await (const record of archiveRecords(root)) {
        if (idOf(record.archive) === id) await forgetArchive(root, record);
      }
      return state === 'archive' ? 'the archive is removed' : 'the directory is removed';
    }, signal);
  }

  async #seen(signal: AbortSignal): Promise<Seen> {
    const { client } = this.#options;
    // the plans first: a volume that is saved between the two reads is in one of them
    const { plans, unknown } = await this.#openPlans();
    const all = await client.list<PersistentVolume>(persistentVolumes, { signal });
    return {
      held: all.flatMap((volume) => this.#held(volume)),
      own: all.flatMap((volume) => this.#own(volume)),
      unclear: all.flatMap((volume) => this.#unclear(volume)),
      plans: plans.flatMap(pathOfPlan),
      unknown,
    };
  }

  async #openPlans(): Promise<OpenPlans> {
    const { client, settings, lock } = this.#options;
    if (lock === undefined) return { plans: [] };
    const { namespace, name: lockName } = lock;
    return await openPlans({ client, namespace, lockName, provisionerName: settings.provisionerName });
  }

  #held(volume: PersistentVolume): Held[] {
    const { directories, mentioned } = useOf(volume, this.#options.settings);
    const { name } = volume.metadata;
    return [...directories, ...mentioned.map((each) => each.slice(0, 1))].map((path) => ({ path, name }));
  }

  #own(volume: PersistentVolume): Held[] {
    const { sharePath, provisionerName } = this.#options.settings;
    const path = isMadeBy(volume, provisionerName) ? pathIfBelow(volume, sharePath) : undefined;
    return path === undefined ? [] : [{ path, name: volume.metadata.name }];
  }

  #unclear(volume: PersistentVolume): string[] {
    const { settings } = this.#options;
    if (!useOf(volume, settings).isUnclear) return [];
    const { uses, cure } = describedUse(volume, settings);
    return [`which directories are unclaimed: PersistentVolume ${volume.metadata.name} ${uses}. ${cure}`];
  }
}

function incompleteOf({ unclear, unknown }: Seen): string[] {
  return [...(unknown === undefined ? [] : [unknown]), ...unclear];
}

function pathOfPlan({ path }: Readonly<Record<string, unknown>>): VolumePath[] {
  return Array.isArray(path) ? [path as string[]] : [];
}

/** Directories of no volume, existing or being created: top-level ones, and those next to volumes in a common parent. */
async function* strangers(
  root: OpenedDirectory,
  { held, plans }: Seen,
): AsyncGenerator<{ path: VolumePath; folder: OpenedDirectory }> {
  const used = [...held.map(({ path }) => path), ...plans];
  const known = new Set(used.map(keyOf));
  const parents = new Set(used.flatMap((path) => withParents(path).slice(0, -1)).map(keyOf));
  const visit = async function* (
    folder: OpenedDirectory,
    above: VolumePath,
  ): AsyncGenerator<{ path: VolumePath; folder: OpenedDirectory }> {
    for await (const bytes of folder.list()) {
      const path = [...above, bytes.toString()];
      if (known.has(keyOf(path)) || isKept(path)) continue;
      const inner = await folder.enter(bytes).catch(unlessNoDirectory);
      if (inner === undefined) continue;
      await using entered = inner;
      const isFolder = parents.has(keyOf(path)) || (path.length === 1 && isArchiveDirectory(path[0] ?? ''));
      if (isFolder) yield* visit(entered, path);
      else yield { path, folder: entered };
    }
  };
  yield* visit(root, []);
}

/** What `--delete` takes. */
function idOf(path: VolumePath): string {
  return path.join('/');
}

function folded(path: VolumePath): VolumePath {
  return path.map(insideKey);
}

function keyOf(path: VolumePath): string {
  return idOf(folded(path));
}

/** The identity of the share, the records of archives, and what the file server keeps. */
function isKept(path: VolumePath): boolean {
  const [first = '', ...rest] = path;
  return isOfFileServer(path.at(-1) ?? '') || (rest.length === 0 && (isReservedName(first) || first === recordsFolder));
}

const archiveState = 'archive';
/** As the snapshotter of csi-driver-nfs names them. */
const snapshotNames = /^snapshot-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function describe(
  path: VolumePath,
  folder: OpenedDirectory,
  record: ArchiveRecord | undefined,
): Promise<StorageFinding> {
  const id = idOf(path);
  const { mtime, ctime, ino } = await folder.stat();
  const isRecorded = record?.inode === String(ino);
  const isArchive = isRecorded || path.at(-1)?.startsWith('archived-') === true;
  if (snapshotNames.test(path.at(-1) ?? '')) {
    const detail = 'a snapshot of csi-driver-nfs by its name, which goes with its VolumeSnapshot';
    return { state: 'snapshot', id, since: mtime.toISOString(), detail, isDeletable: false, isTrouble: false };
  }
  if (!isArchive) {
    const detail = 'no PersistentVolume and no record refers to it';
    return { state: 'unclaimed', id, since: mtime.toISOString(), detail, isDeletable: true, isTrouble: true };
  }
  const detail = isRecorded
    ? `of volume ${record.volume}, class ${record.className}, with a retention`
    : 'an archive by its name; it has no record, so it stays until somebody deletes it';
  const since = isRecorded ? record.archivedAt : ctime.toISOString();
  return { state: archiveState, id, since, detail, isDeletable: true, isTrouble: false };
}

function lost(path: VolumePath, persistentVolume: string): StorageFinding {
  const detail = 'the directory of the PersistentVolume does not exist';
  return { state: 'lost', id: idOf(path), persistentVolume, detail, isDeletable: false, isTrouble: true };
}

function unlessNoDirectory(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT' && !(error instanceof NotDirectoryError)) throw error;
}
