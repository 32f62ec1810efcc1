import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { StringMap } from './messages.ts';

/** How a volume is used: as a file system or as a raw device. */
export type AccessType = 'mount' | 'block';

/** A volume as it stands on disk. */
export interface VolumeRecord extends StoredRecord {
  /** Decimal bytes. */
  capacityBytes: string;
  /** `mount`: the content is a directory; `block`: a sparse file of the volume's size. */
  accessType: AccessType;
  parameters: StringMap;
  mutableParameters: StringMap;
  /** Absent for a driver without topology. */
  segments?: StringMap;
  source?: { snapshotId: string } | { volumeId: string };
  /** By node id. */
  attached: Record<string, { readonly: boolean }>;
  stagingPaths: string[];
  /** By target path. */
  published: Record<string, { readonly: boolean; mode: string }>;
}

/** A snapshot as it stands on disk. */
export interface SnapshotRecord extends StoredRecord {
  sourceVolumeId: string;
  /** Decimal bytes. */
  sizeBytes: string;
  accessType: AccessType;
  /** RFC 3339. */
  createdAt: string;
}

/** Everything the driver remembers. */
export interface HostpathState {
  volumes: RecordFolder<VolumeRecord>;
  snapshots: RecordFolder<SnapshotRecord>;
}

/** Opens the state directory, which is made when missing; see `RecordFolder` for what a restart finds. */
export function openState(stateDir: string): HostpathState {
  return {
    volumes: new RecordFolder(path.join(stateDir, 'volumes')),
    snapshots: new RecordFolder(path.join(stateDir, 'snapshots')),
  };
}

/** What every stored thing has. */
export interface StoredRecord {
  /** Names the directory: must be safe as one path segment. */
  id: string;
  name: string;
  /** Grows with each record of the folder: the order of lists. */
  serial: number;
}

/**
 * Records of one kind, each a directory `<id>/` with its record in `record.json` and its content beside it. A record
 * appears and goes by one rename of its directory and changes by one rename of its file, so that a process killed at
 * any moment leaves only whole records. (The machine's own crash is another matter: nothing is fsynced.)
 *
 * One process at a time: the records are kept in memory, too.
 */
export class RecordFolder<T extends StoredRecord> {
  readonly #folder: string;
  readonly #records = new Map<string, T>();
  readonly #idByName = new Map<string, string>();
  #lastSerial = 0;

  /**
   * Makes the folder when missing, reads what an earlier process left and drops what it did not finish.
   *
   * @throws when a record cannot be read: nobody should lose a volume to a silent skip.
   */
  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    const found: T[] = [];
    for (const entry of readdirSync(folder)) {
      if (entry.startsWith('.')) rmSync(path.join(folder, entry), { recursive: true, force: true });
      else found.push(JSON.parse(readFileSync(path.join(folder, entry, 'record.json'), 'utf8')) as T);
    }
    for (const record of found.sort((a, b) => a.serial - b.serial)) this.#remember(record);
  }

  get(id: string): T | undefined {
    return this.#records.get(id);
  }

  getByName(name: string): T | undefined {
    const id = this.#idByName.get(name);
    return id === undefined ? undefined : this.#records.get(id);
  }

  /** All records, in the order in which they were made. */
  all(): T[] {
    return [...this.#records.values()];
  }

  /** The path of a record's content; whether it exists is another question. */
  contentPath(id: string): string {
    return path.join(this.#folder, id, 'data');
  }

  /**
   * Adds a record once its content is made; when `makeContent` fails, nothing is left.
   *
   * @param makeContent - creates the file or directory at the path it is given.
   */
  async add(fields: Omit<T, 'serial'>, makeContent: (contentPath: string) => Promise<void> | void): Promise<T> {
    const unfinished = path.join(this.#folder, `.new-${fields.id}`);
    mkdirSync(unfinished);
    try {
      await makeContent(path.join(unfinished, 'data'));
      // only now: a record that is finished later must not enter the part of a list that was read already
      const record = { ...fields, serial: this.#lastSerial + 1 } as T;
      writeFileSync(path.join(unfinished, 'record.json'), JSON.stringify(record, null, 2) + '\n');
      renameSync(unfinished, path.join(this.#folder, record.id));
      this.#remember(record);
      return record;
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      throw error;
    }
  }

  /** Replaces a record, on disk first. */
  update(record: T): void {
    const file = path.join(this.#folder, record.id, 'record.json');
    writeFileSync(`${file}.new`, JSON.stringify(record, null, 2) + '\n');
    renameSync(`${file}.new`, file);
    this.#records.set(record.id, record);
  }

  /** Removes a record and its content; gone for everybody from the first moment. A repeat does nothing. */
  async remove(id: string): Promise<void> {
    const record = this.#records.get(id);
    if (record === undefined) return;
    const home = path.join(this.#folder, id);
    const trash = path.join(this.#folder, `.old-${id}`);
    if (existsSync(home)) renameSync(home, trash); // somebody may have removed it by hand
    this.#records.delete(id);
    this.#idByName.delete(record.name);
    await rm(trash, { recursive: true, force: true });
  }

  #remember(record: T): void {
    this.#records.set(record.id, record);
    this.#idByName.set(record.name, record.id);
    this.#lastSerial = Math.max(this.#lastSerial, record.serial);
  }
}
