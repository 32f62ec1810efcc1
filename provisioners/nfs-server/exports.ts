/** The exports: what stands in the file of the server, and what the server has been told. */
import { KeyedLocks } from '../../src/index.ts';
import { ExportsFile, type ExportsFileOptions, type LostExport } from './exports-file.ts';
import type { ExportEntry, Squash } from './ganesha-config.ts';
import type { VolumeDirectories } from './volume-directory.ts';

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

export interface ExportsOptions extends ExportsFileOptions {
  server: ExportServer;
}

/** From this many missing exports on, the server reads all of them at once. */
const fewExports = 20;

/** All exports of one server. Edits of the file and calls to the server happen one at a time. */
export class Exports {
  readonly #options: ExportsOptions;
  readonly #file: ExportsFile;
  readonly #lock = new KeyedLocks();
  /** Directories that are in the file and that the server does not export, with the reason. */
  readonly #unserved = new Map<string, Error>();
  /** The file from which the server was last started, which a reload reads again; undefined: not started yet. */
  #startedFrom: string | undefined;

  private constructor(options: ExportsOptions, file: ExportsFile) {
    this.#options = options;
    this.#file = file;
  }

  /** @throws when there is no file. */
  static async open(options: ExportsOptions): Promise<Exports> {
    return new Exports(options, await ExportsFile.open(options));
  }

  /** How many there are, the pseudo root not counted. */
  get count(): number {
    return this.#file.count;
  }

  /** The file in which the server finds all exports: another one while the disk is full or read-only. */
  get path(): string {
    return this.#file.path;
  }

  /** Writes the file if somebody has damaged it, or a full disk prevented it. To be called before each start of the server. @returns its path. */
  prepare(signal: AbortSignal): Promise<string> {
    return this.#exclusive(signal, async () => {
      await this.#file.save();
      this.#startedFrom = this.#file.path;
      return this.#file.path;
    });
  }

  /** Writes the file if a full disk prevented it, as soon as there is room again. */
  async save(signal: AbortSignal): Promise<void> {
    if (!this.#file.isSaved) await this.#exclusive(signal, () => this.#file.save());
  }

  /** The export of a directory, as it stands in the file. */
  find(directory: string): ExportEntry | undefined {
    return this.#file.all(directory)[0];
  }

  /** Whether clients can mount the directory, as far as the server has been asked. */
  isServed(directory: string): boolean {
    return this.#file.has(directory) && !this.#unserved.has(directory);
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
      await this.#append(this.#file.writable(wanted, failures), failures);
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
      const { server } = this.#options;
      const [known, ...stale] = this.#file.all(directory);
      if (known?.squash === squash && stale.length === 0) {
        await server.activate(known, signal);
        this.#unserved.delete(directory);
        return known;
      }
      await this.#take(directory, signal);
      const added = this.#file.newEntry(directory, squash, await server.active?.(signal));
      try {
        await this.#file.append([added], { mustBeSaved: true });
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
   * @param directories - one that does not exist cannot be exported, and one of a volume only if it is in the file; others may be
   * exported by a file that is included.
   */
  reconcile(directories: Pick<VolumeDirectories, 'exists' | 'isVolume'>, signal: AbortSignal): Promise<void> {
    return this.#exclusive(signal, async () => {
      const { server, logger } = this.#options;
      if (server.active === undefined) return;
      const there: ExportEntry[] = [];
      for (const entry of this.#file.entries) {
        if (entry.id === 0) continue;
        if (await directories.exists(entry.path)) there.push(entry);
        else {
          logger.warn({ directory: entry.path, exportId: entry.id }, 'An export is skipped: its directory is gone');
          this.#unserved.set(entry.path, new Error('its directory is gone'));
        }
      }
      await this.#serve(there, signal);
      await this.#deactivateUnlisted(signal, (path) => directories.isVolume(path));
      logger.info({ exports: this.count }, 'All exports are served');
    });
  }

  /** Writes all of them to the file, or none. */
  async #append(added: readonly ExportEntry[], failures: Map<string, Error>): Promise<void> {
    if (added.length === 0) return;
    try {
      await this.#file.append(added, { mustBeSaved: false });
    } catch (error) {
      for (const { path } of added) failures.set(path, error as Error);
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
      if (last === undefined || missing.length < fewExports || !this.#canReread) return;
      await server
        .reread?.(last, signal)
        .catch((err: unknown) => this.#options.logger.warn({ err }, 'The server did not read all exports again'));
      missing = await this.#missing(entries, signal);
    });
    for (const entry of missing) {
      if (!this.#unserved.has(entry.path)) await this.#attempt([entry], () => server.activate(entry, signal));
    }
  }

  /** Whether the server would find all exports in the file that it was started with. */
  get #canReread(): boolean {
    return this.#startedFrom === undefined || this.#startedFrom === this.#file.path;
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
    const entries = this.#file.all(directory).filter(({ id }) => id !== 0);
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
    await this.#file.remove(entries);
    for (const { path } of entries) this.#unserved.delete(path);
    await this.#options.server.reload?.(signal);
  }

  #exclusive<T>(signal: AbortSignal, section: () => Promise<T>): Promise<T> {
    const current = async (): Promise<T> => {
      await this.#file.adopt();
      return section();
    };
    return this.#lock.run('exports', current, { signal });
  }
}
