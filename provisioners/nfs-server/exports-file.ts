/** The exports file: its entries, and which export ids are in use. */
import { writeFile } from 'node:fs/promises';
import { errnoOf, type Logger } from '../../src/index.ts';
import type { AtomicFile } from './atomic-file.ts';
import { IdPool } from './export-ids.ts';
import type { ExportEntry, Squash } from './ganesha-config.ts';

/** The syntax of the file. */
export interface ExportFormat {
  /** The text of one export, line breaks around it included. */
  write(entry: Omit<ExportEntry, 'text'>): string;
  read(file: string): ExportEntry[];
  /** Whether a file that another program has written is complete. Default: true for any text that is not empty. */
  isWhole?(file: string): boolean;
}

export interface ExportsFileOptions {
  file: AtomicFile;
  /** What the file is to contain. Default: what it contains. */
  text?: string;
  /** Where the server reads the text while the file cannot be written, on another file system. Absent: it reads the file alone. */
  copy?: AtomicFile;
  format: ExportFormat;
  /** Whether a PersistentVolume has the id, although its export may be lost: no other volume gets it. Default: none has it. */
  isTaken?: (id: number) => boolean;
  /** Called when another program has changed the file: exports may be missing. */
  onEdited?: () => void;
  logger: Logger;
}

/** An export that a PersistentVolume names. */
export type LostExport = Omit<ExportEntry, 'text'>;

/** Ids have 16 bits; 0 is the pseudo root, and 152 is its file system in file handles. */
const largestId = 65_535;
const pseudoRootId = 152;

/** A disk that is full or read-only still serves its data, and one that is full is freed by removing some. */
export function isUnwritable(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EROFS'].includes(errnoOf(error) ?? '');
}

/** Whether a volume can have the id. */
export function isVolumeId(id: number): boolean {
  return Number.isInteger(id) && id > 0 && id <= largestId && id !== pseudoRootId;
}

/** Calls must not overlap. */
export class ExportsFile {
  readonly #options: ExportsFileOptions;
  readonly #ids: IdPool;
  /** What the file is to contain; `#written` is what the file contains, as far as it was read. */
  #text: string;
  #written: string;
  /** The entries of each directory; ganesha uses the first of several. */
  readonly #entries = new Map<string, ExportEntry[]>();

  private constructor(options: ExportsFileOptions, { text, written }: { text: string; written: string }) {
    this.#options = options;
    const { isTaken = () => false } = options;
    this.#ids = new IdPool({ max: largestId, isReserved: (id) => !isVolumeId(id) || isTaken(id) });
    this.#text = text;
    this.#written = written;
    this.#read();
  }

  /** @throws when there is no file, and no text for it. */
  static async open(options: ExportsFileOptions): Promise<ExportsFile> {
    const written = await options.file.read();
    const text = options.text ?? written;
    if (text === undefined) throw new Error(`${options.file.path} does not exist`);
    const opened = new ExportsFile(options, { text, written: written ?? '' });
    await opened.save();
    return opened;
  }

  /** Where the server finds all entries. */
  get path(): string {
    const { file, copy = file } = this.#options;
    return this.#text === this.#written ? file.path : copy.path;
  }

  /** Whether the file could be written, so that the server finds all entries in it. */
  get isSaved(): boolean {
    return this.#text === this.#written;
  }

  /** The entry of each directory that is in use, including the pseudo root. */
  get entries(): ExportEntry[] {
    return [...this.#entries.values()].flatMap(([first]) => first ?? []);
  }

  /** The number of exports, without the pseudo root. */
  get count(): number {
    return this.entries.filter(({ id }) => id !== 0).length;
  }

  has(directory: string): boolean {
    return this.#entries.has(directory);
  }

  /** All entries of a directory; the first one is in use. */
  all(directory: string): readonly ExportEntry[] {
    return this.#entries.get(directory) ?? [];
  }

  /**
   * An export with a new id, which is not in the file yet.
   *
   * @param served - by id, what the server exports, also from files that are included.
   * @throws when no id is free.
   */
  newEntry(path: string, squash: Squash, served: ReadonlyMap<number, string> = new Map()): ExportEntry {
    let id = this.#ids.take();
    const skipped: number[] = [];
    while (id !== undefined && served.has(id)) {
      skipped.push(id);
      id = this.#ids.take();
    }
    for (const each of skipped) this.#ids.release(each);
    if (id === undefined) throw new Error(`all ${largestId - 1} export ids are in use`);
    const entry = { id, path, squash };
    return { ...entry, text: this.#options.format.write(entry) };
  }

  /** The entries to add for exports that are missing in the file, except those whose id another export has. */
  writable(lost: readonly LostExport[], failures: Map<string, Error>): ExportEntry[] {
    const owners = new Map(this.entries.map(({ id, path }) => [id, path]));
    return lost.flatMap((export_) => {
      const { id, path } = export_;
      const owner = owners.get(id);
      if (this.#entries.has(path)) return [];
      if (!isVolumeId(id) || owner !== undefined) {
        const why = owner === undefined ? 'no volume can have it' : `${owner} is exported with it`;
        failures.set(path, new Error(`the export id ${id} is not free: ${why}`));
        return [];
      }
      owners.set(id, path);
      return [{ ...export_, text: this.#options.format.write(export_) }];
    });
  }

  /**
   * Adds all of them, or none.
   *
   * @param options.mustBeSaved - whether a disk that is full or read-only is an error; else they are in the copy alone, if there is one.
   */
  async append(added: readonly ExportEntry[], { mustBeSaved }: { mustBeSaved: boolean }): Promise<void> {
    const text = this.#text + added.map((entry) => entry.text).join('');
    await this.#set(text, { mustBeSaved: mustBeSaved || this.#options.copy === undefined });
    for (const entry of added) {
      this.#entries.set(entry.path, [entry]);
      this.#ids.keep(entry.id);
    }
  }

  /** Removes the entries, and all other entries of their directories. A full disk, which this may free, does not prevent it. */
  async remove(entries: readonly ExportEntry[]): Promise<void> {
    let text = this.#text;
    for (const entry of entries) text = text.replace(entry.text, () => '');
    await this.#set(text, { mustBeSaved: false });
    for (const { path } of entries) this.#entries.delete(path);
    const kept = new Set([...this.#entries.values()].flat().map(({ id }) => id)); // an administrator's block may have the same
    for (const { id } of entries) if (!kept.has(id)) this.#ids.release(id);
  }

  /**
   * Reads the changes of an administrator or another program, since each write replaces the whole file. A file that is missing, empty or
   * damaged is written again.
   */
  async adopt(): Promise<void> {
    const { file, format, onEdited, logger } = this.#options;
    const text = (await file.read()) ?? '';
    if (text === this.#written) return;
    const isWhole = text.trim() !== '' && (format.isWhole?.(text) ?? true);
    this.#written = text;
    if (!isWhole) {
      const copy = `${file.path}.damaged`;
      logger.warn({ file: file.path, copy }, 'The exports file is empty or damaged, and is written again');
      if (text !== '')
        await writeFile(copy, text, { mode: 0o600 }).catch((err: unknown) =>
          logger.warn({ copy, err }, 'The damaged exports file could not be copied'),
        );
      await this.save();
      return;
    }
    for (const [{ id } = { id: 0 }] of this.#entries.values()) this.#ids.release(id);
    this.#entries.clear();
    this.#text = text;
    this.#read();
    logger.info(
      { file: file.path, exports: this.count },
      'The exports file was changed by another program, and was read again',
    );
    onEdited?.();
  }

  /**
   * Writes what could not be written earlier; while the disk is full or read-only, into the copy.
   *
   * @returns whether all of it is in the file.
   */
  async save(): Promise<boolean> {
    await this.#set(this.#text, { mustBeSaved: false });
    return this.isSaved;
  }

  #read(): void {
    for (const entry of this.#options.format.read(this.#text)) {
      this.#ids.keep(entry.id);
      this.#entries.set(entry.path, [...this.all(entry.path), entry]);
    }
  }

  async #set(text: string, { mustBeSaved }: { mustBeSaved: boolean }): Promise<void> {
    const { file, copy, logger } = this.#options;
    try {
      if (text !== this.#written) await file.write(text);
      this.#written = text;
    } catch (err) {
      if (mustBeSaved || !isUnwritable(err)) throw err;
      logger.warn({ file: file.path, err }, 'The exports file could not be written, retrying');
      await copy?.write(text);
    }
    this.#text = text;
  }
}
