/** `nfs-provisioner audit`: directories of volumes and exports against PersistentVolumes, claims and the journal. */
import path from 'node:path';
import {
  errnoOf,
  type KubeClient,
  NotDirectoryError,
  OpenedDirectory,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  removeTree,
} from '../../src/index.ts';
import { folderBytes } from '../shared-audit/folder-size.ts';
import { possibleLocks } from '../shared-audit/lock.ts';
import { openPlans } from '../shared-audit/open-plans.ts';
import type { AuditedStorage, StorageFinding, StorageLook } from '../shared-audit/storage-audit.ts';
import { CannotReadError, NotDeletableError } from '../shared-audit/storage-audit-command.ts';
import { knownIdentity } from './identity-file.ts';
import { type SeenExport, type SeenExports, seenExports } from './seen-exports.ts';
import type { Settings } from './settings.ts';
import { requestUnexport } from './unexport-requests.ts';
import { VolumeDirectories } from './volume-directory.ts';
import { VolumeHolders } from './volume-holders.ts';
import { identityOf } from './volume-object.ts';

interface Seen {
  readonly identity: string;
  /** PersistentVolumes with the identity of this provisioner. */
  readonly own: readonly PersistentVolume[];
  readonly holders: VolumeHolders;
  /** Names of volumes in progress. */
  readonly planned: ReadonlySet<string>;
  /** `NAMESPACE/NAME` of each claim, by the name that its volume has or will have. */
  readonly claims: ReadonlyMap<string, string>;
  readonly exports: SeenExports;
  /** What could not be read: without it nothing may be deleted. */
  readonly unknown: readonly string[];
}

type Plans = Pick<Seen, 'planned' | 'unknown'>;

export class ExportAudit implements AuditedStorage {
  readonly #settings: Settings;
  readonly #client: KubeClient;
  readonly #directories: VolumeDirectories;
  readonly name: string;

  constructor({ settings, client }: { settings: Settings; client: KubeClient }) {
    this.#settings = settings;
    this.#client = client;
    this.#directories = new VolumeDirectories(settings.paths.exportDirectory);
    this.name = `${settings.provisionerName} in ${settings.paths.exportDirectory}`;
  }

  async look(signal: AbortSignal): Promise<StorageLook> {
    const seen = await this.#seen(signal); // before the directories: one that is made meanwhile is found in the second look
    await using root = await OpenedDirectory.open(this.#directories.root);
    const findings: StorageFinding[] = [];
    let directories = 0;
    for await (const bytes of root.list()) {
      const name = bytes.toString();
      if (!this.#directories.isVolume(this.#directories.named(name))) continue;
      if (!(await this.#directories.isDirectory(this.#directories.named(name)))) continue;
      directories++;
      if (seen.holders.of(name) === undefined && !seen.planned.has(name)) {
        findings.push(...(await unclaimed(root, name, seen)));
      }
    }
    for (const volume of seen.own) findings.push(...(await this.#lost(volume)));
    for (const entry of seen.exports.entries) findings.push(...(await this.#strayExport(entry, seen)));
    const counts = { directories, PersistentVolumes: seen.own.length, exports: seen.exports.entries.length };
    return { findings, incomplete: seen.unknown, counts: { ...counts, records: seen.planned.size } };
  }

  async bytesOf({ id }: StorageFinding, signal: AbortSignal): Promise<number | undefined> {
    await using root = await OpenedDirectory.open(this.#directories.root);
    await using folder = await enterIfThere(root, id);
    return folder && (await folderBytes(folder, signal));
  }

  deletionOf({ state, detail }: StorageFinding): string | undefined {
    return state === exportState ? `This export will be removed; the data stays. ${detail}` : undefined;
  }

  async delete({ state, id }: StorageFinding, signal: AbortSignal): Promise<string> {
    return await (state === exportState ? this.#unexport(id, signal) : this.#removeDirectory(id, signal));
  }

  async #removeDirectory(name: string, signal: AbortSignal): Promise<string> {
    if (!this.#directories.isVolume(this.#directories.named(name))) {
      throw new NotDeletableError(`it is not a directory pvc-... directly below ${this.#directories.root}`);
    }
    const seen = await this.#seen(signal);
    const why = obstacle(name, seen);
    if (why !== undefined) throw new NotDeletableError(why);
    await using root = await OpenedDirectory.open(this.#directories.root);
    await requireDirectory(root, name);
    signal.throwIfAborted();
    await removeTree(root, name, { signal });
    return 'the directory is removed';
  }

  /** The running provisioner removes it, from the file and from the server. */
  async #unexport(exportId: string, signal: AbortSignal): Promise<string> {
    const seen = await this.#seen(signal);
    const [found, ...others] = seen.exports.entries.filter(({ id }) => idOf({ id }) === exportId);
    if (found === undefined) throw new NotDeletableError('it is gone');
    if (others.length > 0)
      throw new NotDeletableError(`several directories have the id: ${howToUnexport(seen.exports.file)}`);
    if (!this.#directories.isVolume(found.path))
      throw new NotDeletableError(`${found.path} is not the directory of a volume`);
    const why = use(path.basename(found.path), seen);
    if (why !== undefined) throw new NotDeletableError(why);
    await requestUnexport(this.#directories.root, found, signal);
    const { entries, unknown } = await seenExports(this.#settings, signal);
    if (unknown.length > 0) throw new Error(`the exports cannot be read again: ${unknown.join(', ')}`);
    if (entries.some(({ path: directory }) => directory === found.path)) {
      throw new Error('the provisioner has not removed it; its log says why');
    }
    return `${found.path} is no longer exported`;
  }

  /** In the order in which a volume comes to be: of one that is being made something is seen in any case. */
  async #seen(signal: AbortSignal): Promise<Seen> {
    const identity = await this.#identity();
    const names = new Set([this.#settings.provisionerName]);
    for (const volume of (await this.#volumes(signal)).filter((each) => identityOf(each) === identity)) {
      names.add(provisionerOf(volume) ?? this.#settings.provisionerName); // it may have had another name
    }
    const claims = await this.#client.list<PersistentVolumeClaim>(persistentVolumeClaims, { signal });
    const plans = await this.#plans(names);
    const exports = await seenExports(this.#settings, signal);
    const volumes = await this.#volumes(signal);
    return {
      identity,
      own: volumes.filter((volume) => identityOf(volume) === identity),
      holders: new VolumeHolders(volumes, this.#directories),
      planned: plans.planned,
      claims: new Map(claims.map(({ metadata }) => [`pvc-${metadata.uid}`, `${metadata.namespace}/${metadata.name}`])),
      exports,
      unknown: [...plans.unknown, ...exports.unknown],
    };
  }

  /** @throws {CannotReadError} where the disk of the volumes is not: then all of them would count as lost. */
  async #identity(): Promise<string> {
    const { identity, exportDirectory } = this.#settings.paths;
    const known = await knownIdentity(identity);
    if (known !== undefined) return known;
    throw new CannotReadError(
      `${identity} does not exist or is empty: ${exportDirectory} is not the export directory of a provisioner that ` +
        'has volumes. Run the audit in its Pod, with its flags before "audit"',
    );
  }

  async #volumes(signal: AbortSignal): Promise<PersistentVolume[]> {
    return await this.#client.list<PersistentVolume>(persistentVolumes, { signal });
  }

  async #plans(provisionerNames: Iterable<string>): Promise<Plans> {
    const { intentJournal, address } = this.#settings;
    const planned = new Set<string>();
    const unknown = new Set<string>();
    if (intentJournal === 'off') return { planned, unknown: [] };
    for (const provisionerName of provisionerNames) {
      for (const { namespace, name: lockName } of possibleLocks(provisionerName, address.podNamespace)) {
        const found = await openPlans({ client: this.#client, namespace, lockName, provisionerName });
        if (found.unknown !== undefined) unknown.add(found.unknown);
        for (const { volumeName } of found.plans as Record<string, unknown>[]) {
          if (typeof volumeName === 'string') planned.add(volumeName);
          else unknown.add('the journal has a record that names no volume');
        }
      }
    }
    return { planned, unknown: [...unknown] };
  }

  async #lost({ metadata: { name }, spec: { nfs } }: PersistentVolume): Promise<StorageFinding[]> {
    const directory = nfs?.path ?? '';
    const isOurs = this.#directories.isVolume(directory);
    if (isOurs && (await this.#directories.isDirectory(directory))) return [];
    const detail = isOurs
      ? `its directory ${directory} does not exist`
      : `spec.nfs.path ${JSON.stringify(directory)} is not a directory pvc-... directly below ${this.#directories.root}`;
    return [{ state: 'lost', id: name, persistentVolume: name, detail, isDeletable: false, isTrouble: true }];
  }

  /** An export of a volume whose directory or PersistentVolume is gone. */
  async #strayExport({ id, path: directory }: SeenExport, seen: Seen): Promise<StorageFinding[]> {
    const { holders, planned } = seen;
    const name = path.basename(directory);
    if (!this.#directories.isVolume(directory) || planned.has(name)) return [];
    const problems = [
      ...((await this.#directories.isDirectory(directory)) ? [] : ['the directory does not exist']),
      ...(holders.of(name) === undefined ? ['no PersistentVolume has it'] : []),
    ];
    if (problems.length === 0) return [];
    const why = use(name, seen);
    const detail = `${directory}: ${problems.join(', and ')}${why === undefined ? '' : `; not deletable: ${why}`}`;
    const volume = holders.of(name);
    const persistentVolume = volume === undefined ? {} : { persistentVolume: volume };
    const isDeletable = why === undefined;
    return [{ state: exportState, id: idOf({ id }), ...persistentVolume, detail, isDeletable, isTrouble: true }];
  }
}

async function unclaimed(root: OpenedDirectory, name: string, seen: Seen): Promise<StorageFinding[]> {
  await using folder = await enterIfThere(root, name);
  if (folder === undefined) return []; // removed meanwhile
  const why = obstacle(name, seen);
  const detail = `no PersistentVolume and no record refers to it${why === undefined ? '' : `; not deletable: ${why}`}`;
  const since = (await folder.stat()).mtime.toISOString();
  return [{ state: 'unclaimed', id: name, since, detail, isDeletable: why === undefined, isTrouble: true }];
}

const exportState = 'export';

function idOf({ id }: Pick<SeenExport, 'id'>): string {
  return `export-${id}`;
}

/** Why a directory must not be deleted, with the way out; undefined: it may be. */
function obstacle(name: string, seen: Seen): string | undefined {
  const { names, entries, file } = seen.exports;
  const used = use(name, seen);
  if (used !== undefined || !names.has(name)) return used;
  const entry = entries.find(({ path: directory }) => path.basename(directory) === name);
  return entry === undefined
    ? `${file} names it. ${howToUnexport(file)}`
    : `it is exported. Remove the export first: --delete ${idOf(entry)}`;
}

/** Why neither the directory nor its export may be deleted, and what to do; undefined: no user of it is known. */
function use(name: string, { identity, own, holders, planned, claims, unknown }: Seen): string | undefined {
  const [first] = unknown;
  if (first !== undefined) return `not everything is known: ${first}`;
  if (own.length === 0) {
    return `no PersistentVolume has the identity ${identity} of the export directory: this may be another cluster than that of its volumes. Remove the directory yourself if it is not`;
  }
  const holder = holders.of(name);
  if (holder !== undefined) return `PersistentVolume ${holder} has it or a part of it`;
  if (holders.above !== undefined) {
    return `PersistentVolume ${holders.above} has a directory above it. If that is on another server, remove this one yourself`;
  }
  if (planned.has(name))
    return 'the journal has a record of the volume, which may be in progress or be kept on purpose';
  const claim = claims.get(name);
  if (claim !== undefined) return `it is the directory of the claim ${claim}, which exists: delete that first`;
  return undefined;
}

/** The server keeps exporting what was removed from the file until it restarts. */
function howToUnexport(file: string): string {
  return `Remove it from ${file}, and restart the provisioner`;
}

/** @throws {NotDeletableError} for what is gone, or no directory itself. */
async function requireDirectory(root: OpenedDirectory, name: string): Promise<void> {
  await using found = await enterIfThere(root, name);
  if (found === undefined) throw new NotDeletableError(`${name} is gone, or not a directory, such as a symbolic link`);
}

/** Undefined for what is gone, or no directory itself. */
async function enterIfThere(root: OpenedDirectory, name: string): Promise<OpenedDirectory | undefined> {
  try {
    return await root.enter(name);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || error instanceof NotDirectoryError) return undefined;
    throw error;
  }
}

function provisionerOf({ metadata }: PersistentVolume): string | undefined {
  return metadata.annotations?.['pv.kubernetes.io/provisioned-by'];
}
