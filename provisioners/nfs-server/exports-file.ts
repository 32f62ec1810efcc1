/** The exports file: its entries, and which export ids are in use. */
import { writeFile } from 'node:fs/promises';
import type { Logger } from '../../src/index.ts';
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

/** Whether a volume can have the id. */
export function isVolumeId(id: number): boolean {
  return Number.isInteger(id) && id > 0 && id <= largestId && id !== pseudoRootId;
}

/** Calls must not overlap. */
export class ExportsFile {
  readonly #options: ExportsFileOptions;
  readonly #ids: IdPool;
  #text: string;
  /** The entries of each directory; ganesha uses the first of several. */
  readonly #entries = new Map<string, ExportEntry[]>();

  private constructor(options: ExportsFileOptions, text: string) {
    this.#options = options;
    const { isTaken = () => false } = options;
    this.#ids = new IdPool({ max: largestId, isReserved: (id) => !isVolumeId(id) || isTaken(id) });
    this.#text = text;
    this.#read();
  }

  /** @throws when there is no file. */
  static async open(options: ExportsFileOptions): Promise<ExportsFile> {
    const text = await options.file.read();
    if (text === undefined) throw new Error(`${options.file.path} does not exist`);
    return new ExportsFile(options, text);
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

  /** An export with a new id, which is not in the file yet. @throws when no id is free. */
  newEntry(path: string, squash: Squash): ExportEntry {
    const id = this.#ids.take();
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

  /** Adds all of them, or none. */
  async append(added: readonly ExportEntry[]): Promise<void> {
    await this.#write(this.#text + added.map(({ text }) => text).join(''));
    for (const entry of added) {
      this.#entries.set(entry.path, [entry]);
      this.#ids.keep(entry.id);
    }
  }

  /** Removes the entries, and all other entries of their directories. */
  async remove(entries: readonly ExportEntry[]): Promise<void> {
    let text = this.#text;
    for (const entry of entries) text = text.replace(entry.text, () => '');
    await this.#write(text);
    for (const { id, path } of entries) {
      this.#entries.delete(path);
      this.#ids.release(id);
    }
  }

  /**
   * Reads the changes of an administrator or another program, as each write replaces the whole file. A file that is empty or damaged,
   * such as while an editor writes it, is ignored.
   */
  async adopt(): Promise<void> {
    const { file, format, onEdited, logger } = this.#options;
    const text = (await file.read()) ?? '';
    if (text === this.#text) return;
    const isWhole = text.trim() !== '' && (format.isWhole?.(text) ?? true);
    if (!isWhole) {
      const copy = `${file.path}.damaged`;
      if (text !== '') await writeFile(copy, text, { mode: 0o600 });
      logger.warn({ file: file.path, copy }, 'The exports file is empty or damaged, and the next change replaces it');
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

  #read(): void {
    for (const entry of this.#options.format.read(this.#text)) {
      this.#ids.keep(entry.id);
      this.#entries.set(entry.path, [...this.all(entry.path), entry]);
    }
  }

  async #write(text: string): Promise<void> {
    await this.#options.file.write(text);
    this.#text = text;
  }
}
