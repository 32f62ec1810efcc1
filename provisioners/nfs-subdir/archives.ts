/**
 * Archives with a retention: what a class with `archiveRetention` has archived is recorded in the root of the share, so that it
 * is recognised as ours when its retention is over. What has no record is never removed.
 */
import { open, readFile, unlink } from 'node:fs/promises';
import {
  type Clock,
  errnoOf,
  type KubeClient,
  type Logger,
  OpenedDirectory,
  type ProvisionerParts,
  removeTree,
  type StorageClass,
  storageClasses,
} from '../../src/index.ts';
import { archiveRetentionOf } from './class-parameters.ts';
import { keysOfHolders } from './directory-use.ts';
import type { PatientCalls } from './patient-calls.ts';
import type { Share } from './share.ts';
import type { VolumePath } from './volume-path.ts';

/** No volume can have a name that begins so, nor an `archiveDirectory` this one. */
export const recordsFolder = '.archived.records';

/** What is written before a directory is archived. */
export interface ArchiveRecord {
  readonly volume: string;
  readonly className: string;
  /** From the root of the share. */
  readonly archive: VolumePath;
  /** Of the directory: another one under the same name is left alone. */
  readonly inode: string;
  /** RFC 3339. */
  readonly archivedAt: string;
}

/** Writes a record; one of the same volume, from an interrupted attempt, is replaced. */
export async function recordArchive(root: OpenedDirectory, record: ArchiveRecord): Promise<void> {
  await using folder = await root.enterOrMake(recordsFolder);
  await using file = await open(folder.entry(fileOf(record)), 'w', 0o600);
  await file.writeFile(JSON.stringify(record));
  await file.sync();
}

/** The records of a share; what is no record is left out. */
export async function* archiveRecords(root: OpenedDirectory): AsyncGenerator<ArchiveRecord> {
  let folder: OpenedDirectory;
  try {
    folder = await root.enter(recordsFolder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return;
    throw error;
  }
  await using records = folder;
  for await (const name of records.list()) {
    const record = parsed(await readFile(records.entry(name), 'utf8').catch(() => ''));
    if (record !== undefined) yield record;
  }
}

function fileOf({ volume }: Pick<ArchiveRecord, 'volume'>): string {
  return `${encodeURIComponent(volume)}.json`;
}

function parsed(text: string): ArchiveRecord | undefined {
  try {
    const record = JSON.parse(text) as Partial<ArchiveRecord>;
    const { volume, className, archive, inode, archivedAt } = record;
    const isWhole = [volume, className, inode, archivedAt].every((each) => typeof each === 'string');
    const isPath = Array.isArray(archive) && archive.length > 0 && archive.every((each) => typeof each === 'string');
    return isWhole && isPath ? (record as ArchiveRecord) : undefined;
  } catch {
    return undefined;
  }
}

/** Forgets an archive, such as one that is gone. */
export async function forgetArchive(root: OpenedDirectory, record: Pick<ArchiveRecord, 'volume'>): Promise<void> {
  await using folder = await root.enter(recordsFolder);
  await unlink(folder.entry(fileOf(record)));
}

export interface ArchiveSweepOptions {
  share: Share;
  calls: PatientCalls;
  client: KubeClient;
  volumesWith: ProvisionerParts['volumesWith'];
  clock: Clock;
  logger: Logger;
}

/** Removes the archives whose retention is over. Safe to repeat. @throws what requests and the file system throw. */
export async function sweepArchives(options: ArchiveSweepOptions, signal: AbortSignal): Promise<void> {
  const { calls, share, client } = options;
  const classes = await client.list<StorageClass>(storageClasses, { signal });
  await calls.run(
    (until) =>
      share.within(async (root) => {
        for await (const record of archiveRecords(root)) {
          until.throwIfAborted();
          if (isOver(record, classes, options.clock)) await removeArchive(root, record, options, until);
        }
      }, until),
    signal,
  );
}

/** An archive whose class is gone, or has no usable retention any more, is kept. */
function isOver(
  { className, archivedAt, archive }: ArchiveRecord,
  classes: readonly StorageClass[],
  clock: Clock,
): boolean {
  if (archive.at(-1)?.startsWith('archived-') !== true) return false; // Pods that mount the whole export can write records
  const storageClass = classes.find(({ metadata }) => metadata.name === className);
  let retentionMs: number | undefined;
  try {
    retentionMs = storageClass && archiveRetentionOf(storageClass);
  } catch {
    return false;
  }
  return retentionMs !== undefined && clock.wallMs() - Date.parse(archivedAt) > retentionMs;
}

async function removeArchive(
  root: OpenedDirectory,
  record: ArchiveRecord,
  { volumesWith, logger }: ArchiveSweepOptions,
  signal: AbortSignal,
): Promise<void> {
  const { archive, volume, archivedAt } = record;
  const fields = { volume, archive: archive.join('/'), archivedAt };
  const [holder] = await volumesWith(keysOfHolders(archive), signal);
  if (holder !== undefined) {
    logger.warn({ ...fields, holder: holder.metadata.name }, 'The archive is kept: a PersistentVolume uses it');
    return;
  }
  const found = await inodeOf(root, archive);
  if (found !== undefined && found !== record.inode) {
    logger.warn(fields, 'Another directory has the name of the archive, and is kept');
    return;
  }
  if (found !== undefined) {
    await using parent = await root.walk(archive.slice(0, -1));
    await removeTree(parent, archive.at(-1) ?? '', { signal });
    logger.info(fields, 'Archive removed, since its retention is over');
  }
  await forgetArchive(root, record);
}

/** Undefined if there is no such directory. */
export async function inodeOf(root: OpenedDirectory, path: VolumePath): Promise<string | undefined> {
  try {
    await using directory = await root.walk(path);
    return String((await directory.stat()).ino);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
