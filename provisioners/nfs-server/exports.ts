/** The exports: what stands in the file of the server, and what the server has been told. */
import { writeFile } from 'node:fs/promises';
import { KeyedLocks, type Logger } from '../../src/index.ts';
import type { AtomicFile } from './atomic-file.ts';
import { IdPool } from './export-ids.ts';
import type { ExportEntry, Squash } from './ganesha-config.ts';

/** How exports stand in the file. */
export interface ExportFormat {
  /** The text of one export, line breaks around it included. */
  write(entry: Omit<ExportEntry, 'text'>): string;
  read(file: string): ExportEntry[];
  /** Whether a file that somebody else has written can be used. Default: each that is not empty can. */
  isWhole?(file: string): boolean;
}

/** The server that reads the file. */
export interface ExportServer {
  /** Resolves once clients can mount the export. It stands in the file; repeats are safe. */
  activate(entry: ExportEntry, signal: AbortSignal): Promise<void>;
  /** Resolves once no client has the export any more, also when it never was. */
  deactivate(entry: ExportEntry, signal: AbortSignal): Promise<void>;
  /** Exports went from the file. Absent where `deactivate` was all there is to do. */
  reload?(signal: AbortSignal): Promise<void>;
  /**
   * Has the server read the whole file again, and resolves once it exports the directory: for many missing exports, since adding
   * them one by one takes long. Absent if the server cannot be made to do so.
   */
  reread?(last: ExportEntry, signal: AbortSignal): Promise<void>;
  /** What clients can mount now: directories by id. Absent where the server cannot be asked. */
  active?(signal: AbortSignal): Promise<ReadonlyMap<number, string>>;
}

export interface ExportsOptions {
  file: AtomicFile;
  format: ExportFormat;
  server: ExportServer;
  /** Whether an id is that of a PersistentVolume, whose export may be lost: no other volume gets it. Default: none is. */
  isTaken?: (id: number) => boolean;
  /** Called when somebody else has changed the file: it may have lost exports. */
  onEdited?: () => void;
  logger: Logger;
}

/** An export that a PersistentVolume names. */
export type LostExport = Omit<ExportEntry, 'text'>;

/** Ids have 16 bits; 0 is the pseudo root, and 152 is its file system in file handles. */
const largestId = 65_535;
const pseudoRootId = 152;

/** From this many missing exports on, the server reads all of them at once. */
const fewExports = 20;

/** Whether a volume can have the id. */
export function isVolumeId(id: number): boolean {
  return Number.isInteger(id) && id > 0 && id <= largestId && id !== pseudoRootId;
}

/** All exports of one server. Edits of the file and calls to the server happen one at a time. */
export class Exports {
  readonly #options: ExportsOptions;
  readonly #ids: IdPool;
  readonly #lock = new KeyedLocks();
  #text: string;
  /** Those of each directory; of several ganesha takes the first. */
  readonly #entries = new Map<string, ExportEntry[]>();
  /** Directories that are in the file and that the server does not export, with the reason. */
  readonly #unserved = new Map<string, Error>();

  private constructor(options: ExportsOptions, text: string) {
    this.#options = options;
    const { isTaken = () => false } = options;
    this.#ids = new IdPool({ max: largestId, isReserved: (id) => !isVolumeId(id) || isTaken(id) });
    this.#text = text;
    this.#read();
  }

  /** @throws when there is no file. */
  static async open(options: ExportsOptions): Promise<Exports> {
    const text = await options.file.read();
    if (text === undefined) throw new Error(`${options.file.path} does not exist`);
    return new Exports(options, text);
  }

  /** How many there are, the pseudo root not counted. */
  get count(): number {
    return [...this.#entries.values()].filter(([first]) => first?.id !== 0).length;
  }

  /** The export of a directory, as it stands in the file. */
  find(directory: string): ExportEntry | undefined {
    return this.#entries.get(directory)?.[0];
  }

  /** Whether clients can mount the directory, as far as the server has been asked. */
  isServed(directory: string): boolean {
    return this.#entries.has(directory) && !this.#unserved.has(directory);
  }

  /**
   * Restores exports that the file has lost, with their ids, and those that the server did not accept.
   *
   * @param isWanted - called directly before: a volume may be deleted meanwhile.
   * @returns why some could not be restored, by directory.
   */
  restore(
    lost: readonly LostExport[],
    isWanted: (directory: string) => boolean,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Error>> {
    return this.#exclusive(signal, async () => {
      const failures = new Map<string, Error>();
      const wanted = lost.filter(({ path }) => isWanted(path));
      await this.#append(this.#writable(wanted, failures), failures);
      const entries = wanted.flatMap(({ path }) => this.find(path) ?? []);
      await this.#serve(
        entries.filter(({ path }) => !failures.has(path)),
        signal,
      );
      for (const { path } of entries) {
        const reason = this.#unserved.get(path);
        if (reason !== undefined) failures.set(path, reason);
      }
      return failures;
    });
  }

  /**
   * Exports a directory. One that stands in the file already, from an earlier attempt, is taken over.
   *
   * @throws when it could not be exported; then it does not stand in the file either.
   */
  add({ directory, squash }: { directory: string; squash: Squash }, signal: AbortSignal): Promise<ExportEntry> {
    return this.#exclusive(signal, async () => {
      const { format, server } = this.#options;
      const [known, ...stale] = this.#all(directory);
      if (known?.squash === squash && stale.length === 0) {
        await server.activate(known, signal);
        this.#unserved.delete(directory);
        return known;
      }
      await this.#take(directory, signal);
      const id = this.#ids.take();
      if (id === undefined) throw new Error(`all ${largestId - 1} export ids are in use`);
      const entry = { id, path: directory, squash };
      const added: ExportEntry = { ...entry, text: format.write(entry) };
      try {
        await this.#write(this.#text + added.text);
        this.#entries.set(directory, [added]);
        await server.activate(added, signal);
      } catch (error) {
        await this.#undo(added);
        throw error;
      }
      return added;
    });
  }

  /** Resolves once the directory is exported no more. Safe to repeat. */
  remove(directory: string, signal: AbortSignal): Promise<void> {
    return this.#exclusive(signal, async () => {
      const hadEntries = await this.#take(directory, signal);
      if (hadEntries) return;
      const { server } = this.#options;
      if (server.active === undefined)
        await server.reload?.(signal); // it may have the export still
      else await this.#deactivateUnlisted(signal, (path) => path === directory);
    });
  }

  /**
   * Makes the server export exactly what stands in the file: to be called after each of its starts, at which it skips what
   * it cannot serve.
   *
   * @param exists - whether a directory is there; one that is not cannot be exported.
   */
  reconcile(exists: (directory: string) => Promise<boolean>, signal: AbortSignal): Promise<void> {
    return this.#exclusive(signal, async () => {
      const { server, logger } = this.#options;
      if (server.active === undefined) return;
      const there: ExportEntry[] = [];
      for (const [entry] of this.#entries.values()) {
        if (entry === undefined || entry.id === 0) continue;
        if (await exists(entry.path)) there.push(entry);
        else {
          logger.warn({ directory: entry.path, exportId: entry.id }, 'An export is skipped: its directory is gone');
          this.#unserved.set(entry.path, new Error('its directory is gone'));
        }
      }
      await this.#serve(there, signal);
      await this.#deactivateUnlisted(signal, (path) => path !== '/');
      logger.info({ exports: this.count }, 'All exports are served');
    });
  }

  /** Those that the file lacks, as they will be in it, except those whose id another one has. */
  #writable(lost: readonly LostExport[], failures: Map<string, Error>): ExportEntry[] {
    const owners = new Map([...this.#entries.values()].flatMap(([entry]) => (entry ? [[entry.id, entry.path]] : [])));
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

  /** Writes all of them to the file, or none. */
  async #append(added: readonly ExportEntry[], failures: Map<string, Error>): Promise<void> {
    if (added.length === 0) return;
    try {
      await this.#write(this.#text + added.map(({ text }) => text).join(''));
    } catch (error) {
      for (const { path } of added) failures.set(path, error as Error);
      return;
    }
    for (const entry of added) {
      this.#entries.set(entry.path, [entry]);
      this.#ids.keep(entry.id);
    }
  }

  /** Has the server export what it does not export yet, and remembers what it refuses. Never rejects. */
  async #serve(entries: readonly ExportEntry[], signal: AbortSignal): Promise<void> {
    const { server } = this.#options;
    if (entries.length === 0) return;
    let missing = entries;
    await this.#attempt(entries, async () => {
      if (server.active === undefined) await server.reload?.(signal);
      missing = await this.#missing(entries, signal);
      const last = missing.at(-1);
      if (last === undefined || missing.length < fewExports || server.reread === undefined) return;
      await server
        .reread(last, signal)
        .catch((err: unknown) => this.#options.logger.warn({ err }, 'The server did not read all exports again'));
      missing = await this.#missing(entries, signal);
    });
    for (const entry of missing) {
      if (!this.#unserved.has(entry.path)) await this.#attempt([entry], () => server.activate(entry, signal));
    }
  }

  /** Those that clients cannot mount; none if the server cannot be asked. */
  async #missing(entries: readonly ExportEntry[], signal: AbortSignal): Promise<readonly ExportEntry[]> {
    const active = await this.#options.server.active?.(signal);
    return active === undefined ? [] : entries.filter(({ id, path }) => active.get(id) !== path);
  }

  async #attempt(entries: readonly ExportEntry[], serve: () => Promise<void>): Promise<void> {
    try {
      await serve();
      for (const { path } of entries) this.#unserved.delete(path);
    } catch (err) {
      const [{ path: directory, id: exportId } = {}] = entries;
      this.#options.logger.error(
        { directory, exportId, directories: entries.length, err },
        'A directory could not be exported',
      );
      for (const { path } of entries) this.#unserved.set(path, err as Error);
    }
  }

  /** A failed attempt leaves nothing behind; while the server is away, its next start does without the block. */
  async #undo(entry: ExportEntry): Promise<void> {
    const { server, logger } = this.#options;
    const signal = AbortSignal.timeout(5000); // also after the attempt was aborted
    const why = (err: unknown): void =>
      logger.warn({ directory: entry.path, exportId: entry.id, err }, 'A failed export could not be removed at once');
    await server.deactivate(entry, signal).catch(why);
    await this.#forget([entry], signal).catch(why);
  }

  /** @returns whether the directory stood in the file. */
  async #take(directory: string, signal: AbortSignal): Promise<boolean> {
    const entries = this.#all(directory).filter(({ id }) => id !== 0);
    for (const entry of entries) await this.#options.server.deactivate(entry, signal);
    if (entries.length > 0) await this.#forget(entries, signal);
    return entries.length > 0;
  }

  /** What the server exports without being told by the file, such as the rest of an attempt that was cut short. */
  async #deactivateUnlisted(signal: AbortSignal, concerns: (path: string) => boolean): Promise<void> {
    const { server } = this.#options;
    if (server.active === undefined) return;
    for (const [id, path] of await server.active(signal)) {
      if (id === 0 || !concerns(path) || this.find(path)?.id === id) continue;
      await server.deactivate({ id, path, squash: 'no_root_squash', text: '' }, signal);
    }
  }

  async #forget(entries: readonly ExportEntry[], signal: AbortSignal): Promise<void> {
    let text = this.#text;
    for (const entry of entries) text = text.replace(entry.text, () => '');
    await this.#write(text);
    for (const { id, path } of entries) {
      this.#entries.delete(path);
      this.#unserved.delete(path);
      this.#ids.release(id);
    }
    await this.#options.server.reload?.(signal);
  }

  #read(): void {
    for (const entry of this.#options.format.read(this.#text)) {
      this.#ids.keep(entry.id);
      this.#entries.set(entry.path, [...this.#all(entry.path), entry]);
    }
  }

  /**
   * Takes over what an administrator, or another program, has changed in the file: we replace it as a whole. One that is empty or
   * damaged, as while an editor writes it, is not taken over.
   */
  async #adopt(): Promise<void> {
    const { file, format, onEdited, logger } = this.#options;
    const text = (await file.read()) ?? '';
    if (text === this.#text) return;
    const isWhole = text.trim() !== '' && (format.isWhole?.(text) ?? true);
    if (!isWhole) {
      const copy = `${file.path}.damaged`;
      if (text !== '') await writeFile(copy, text, { mode: 0o600 });
      logger.warn(
        { file: file.path, copy },
        'The file of the exports is empty or damaged, and is replaced at the next change',
      );
      return;
    }
    for (const [{ id } = { id: 0 }] of this.#entries.values()) this.#ids.release(id);
    this.#entries.clear();
    this.#text = text;
    this.#read();
    logger.info({ file: file.path, exports: this.count }, 'The file of the exports was changed by others');
    onEdited?.();
  }

  async #write(text: string): Promise<void> {
    await this.#options.file.write(text);
    this.#text = text;
  }

  #all(directory: string): readonly ExportEntry[] {
    return this.#entries.get(directory) ?? [];
  }

  #exclusive<T>(signal: AbortSignal, section: () => Promise<T>): Promise<T> {
    const current = async (): Promise<T> => {
      await this.#adopt();
      return section();
    };
    return this.#lock.run('exports', current, { signal });
  }
}
