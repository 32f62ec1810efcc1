/** The exports: what stands in the file of the server, and what the server has been told. */
import { KeyedLocks, type Logger } from '../../src/index.ts';
import type { AtomicFile } from './atomic-file.ts';
import { IdPool } from './export-ids.ts';
import type { ExportEntry, Squash } from './ganesha-config.ts';

/** How exports stand in the file. */
export interface ExportFormat {
  /** The text of one export, line breaks around it included. */
  write(entry: Omit<ExportEntry, 'text'>): string;
  read(file: string): ExportEntry[];
}

/** The server that reads the file. */
export interface ExportServer {
  /** Resolves once clients can mount the export. It stands in the file; repeats are safe. */
  activate(entry: ExportEntry, signal: AbortSignal): Promise<void>;
  /** Resolves once no client has the export any more, also when it never was. */
  deactivate(entry: ExportEntry, signal: AbortSignal): Promise<void>;
  /** Exports went from the file. Absent where `deactivate` was all there is to do. */
  reload?(signal: AbortSignal): Promise<void>;
  /** What clients can mount now: directories by id. Absent where the server cannot be asked. */
  active?(signal: AbortSignal): Promise<ReadonlyMap<number, string>>;
}

export interface ExportsOptions {
  file: AtomicFile;
  format: ExportFormat;
  server: ExportServer;
  logger: Logger;
}

/** Ids have 16 bits; 0 is the pseudo root, and 152 is its file system in file handles. */
const largestId = 65_535;
const pseudoRootId = 152;

/** All exports of one server. Edits of the file and calls to the server happen one at a time. */
export class Exports {
  readonly #options: ExportsOptions;
  readonly #ids = new IdPool({ max: largestId, reserved: [pseudoRootId] });
  readonly #lock = new KeyedLocks();
  #text: string;
  /** Those of each directory; of several ganesha takes the first. */
  readonly #entries = new Map<string, ExportEntry[]>();

  private constructor(options: ExportsOptions, text: string) {
    this.#options = options;
    this.#text = text;
    for (const entry of options.format.read(text)) {
      this.#ids.keep(entry.id);
      this.#entries.set(entry.path, [...this.#all(entry.path), entry]);
    }
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
      if (!hadEntries) await this.#deactivateUnlisted(signal, (path) => path === directory);
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
      const active = await server.active(signal);
      for (const [entry] of this.#entries.values()) {
        if (entry === undefined || entry.id === 0 || active.get(entry.id) === entry.path) continue;
        const fields = { directory: entry.path, exportId: entry.id };
        if (!(await exists(entry.path))) {
          logger.warn(fields, 'An export is skipped: its directory is gone');
          continue;
        }
        try {
          await server.activate(entry, signal);
        } catch (err) {
          logger.error({ ...fields, err }, 'A directory could not be exported');
        }
      }
      await this.#deactivateUnlisted(signal, (path) => path !== '/');
      logger.info({ exports: this.count }, 'All exports are served');
    });
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
      this.#ids.release(id);
    }
    await this.#options.server.reload?.(signal);
  }

  async #write(text: string): Promise<void> {
    await this.#options.file.write(text);
    this.#text = text;
  }

  #all(directory: string): readonly ExportEntry[] {
    return this.#entries.get(directory) ?? [];
  }

  #exclusive<T>(signal: AbortSignal, section: () => Promise<T>): Promise<T> {
    return this.#lock.run('exports', section, { signal });
  }
}
