/**
 * Work in directories that others change meanwhile, such as pods in the volumes of an export. Everything is named relative
 * to an opened directory, by `/proc/self/fd/N/NAME`, as the `...at` calls of POSIX do: whatever a path above it becomes, the
 * directory stays the same one. No symbolic link below it is ever followed. Linux only.
 */
import { type BigIntStats, constants, type OpenDirOptions } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, rename, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import { errnoOf } from './errno.ts';
import { makeDirectory } from './make-directory.ts';

/** Needs no permission to read the directory (Linux, `open(2)`); Node.js does not name it. */
const O_PATH = 0o10000000;

/** What stands where a directory was expected. */
export class NotDirectoryError extends Error {
  override readonly name = 'NotDirectoryError';

  constructor(place: string, what: 'a symbolic link' | 'not a directory') {
    super(`${place} is ${what}`);
  }
}

/** The name of one entry; in bytes where it need not be UTF-8. */
export type EntryName = string | Buffer;

/** A directory that stays the same one, whatever becomes of the path that led to it. To be closed with `await using`. */
export class OpenedDirectory implements AsyncDisposable {
  readonly #handle: FileHandle;
  /** Where it was found, for messages alone. */
  readonly place: string;

  private constructor(handle: FileHandle, place: string) {
    this.#handle = handle;
    this.place = place;
  }

  /**
   * Opens a directory that the caller trusts: symbolic links of this path are followed.
   *
   * @throws the error of the file system.
   */
  static async open(folder: string): Promise<OpenedDirectory> {
    return new OpenedDirectory(await open(folder, O_PATH | constants.O_DIRECTORY), folder);
  }

  /**
   * The path of an entry, for calls of `node:fs` that follow no symbolic link at its end. Good while this is open.
   *
   * @throws {TypeError} for a text that is not the name of one entry, such as one with a slash.
   */
  entry(name: EntryName): EntryName {
    const text = name.toString('latin1');
    if (/^\.{0,2}$|[/\0]/.test(text)) throw new TypeError(`${JSON.stringify(text)} is not the name of one entry`);
    const prefix = `/proc/self/fd/${this.#handle.fd}/`;
    return typeof name === 'string' ? prefix + name : Buffer.concat([Buffer.from(prefix), name]);
  }

  /**
   * Opens a directory in it.
   *
   * @throws {NotDirectoryError} when the name is that of something else, also of a symbolic link; else the error of the file
   * system, such as `ENOENT`.
   */
  async enter(name: EntryName): Promise<OpenedDirectory> {
    const place = path.join(this.place, name.toString());
    const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
    try {
      return new OpenedDirectory(await open(this.entry(name), flags), place);
    } catch (error) {
      const code = errnoOf(error);
      if (code !== 'ENOTDIR' && code !== 'ELOOP') throw this.#named(error);
      const found = await lstat(this.entry(name)).catch(() => undefined);
      throw new NotDirectoryError(place, found?.isSymbolicLink() === true ? 'a symbolic link' : 'not a directory');
    }
  }

  /** As `enter`, after making the directory where it is missing, with the permission bits that the umask leaves of 0777. */
  async enterOrMake(name: EntryName): Promise<OpenedDirectory> {
    await mkdir(this.entry(name)).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw this.#named(error);
    });
    return this.enter(name);
  }

  /**
   * Follows several names from here. What is passed on the way is closed again; without names it is opened once more.
   *
   * @param options.make - missing directories are made.
   * @throws as `enter`.
   */
  async walk(names: readonly string[], { make = false } = {}): Promise<OpenedDirectory> {
    let reached = new OpenedDirectory(await open(this.#path, O_PATH | constants.O_DIRECTORY), this.place);
    for (const name of names) {
      await using passed = reached;
      reached = await (make ? passed.enterOrMake(name) : passed.enter(name));
    }
    return reached;
  }

  /** What the file system says of the directory itself. */
  async stat(): Promise<BigIntStats> {
    return await this.#handle.stat({ bigint: true });
  }

  /** Whether something has this name, be it a dangling link. */
  async has(name: EntryName): Promise<boolean> {
    try {
      await lstat(this.entry(name));
      return true;
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return false;
      throw this.#named(error);
    }
  }

  /** Names of its entries, in no order, as bytes. Of entries that are made or removed meanwhile some may be left out. */
  async *list(): AsyncGenerator<Buffer> {
    const inBytes = { bufferSize: 256, encoding: 'buffer' } as unknown as OpenDirOptions; // unknown to the types alone
    try {
      for await (const { name } of await opendir(this.#path, inBytes)) yield name as unknown as Buffer;
    } catch (error) {
      throw this.#named(error);
    }
  }

  /** Moves an entry into another opened directory of the same file system. An empty directory of the new name is replaced. */
  async moveTo(name: EntryName, target: OpenedDirectory, newName: EntryName): Promise<void> {
    await target.#call(this.#call(rename(this.entry(name), target.entry(newName))));
  }

  /** Makes a directory in it as `makeDirectory` does, with exactly these permission bits. @returns whether it was made now. */
  make(name: EntryName, options: { mode: number; gid?: number }): Promise<boolean> {
    const made = makeDirectory(this.entry(name), options).catch((error: unknown) => {
      const isNamed = !(error instanceof Error) || error.message.includes("'");
      if (!isNamed) error.message += ` '${this.entry(name).toString()}'`; // such as of `fchmod`, which knows no path
      throw error;
    });
    return this.#call(made);
  }

  /** Removes an entry that is no directory; of a symbolic link, the link. @throws the error of the file system. */
  async unlink(name: EntryName): Promise<void> {
    await this.#call(unlink(this.entry(name)));
  }

  /** Removes an empty directory. @throws the error of the file system, such as `ENOTEMPTY`. */
  async removeEmpty(name: EntryName): Promise<void> {
    await this.#call(rmdir(this.entry(name)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  get #path(): string {
    return `/proc/self/fd/${this.#handle.fd}/.`;
  }

  #call<T>(calling: Promise<T>): Promise<T> {
    return calling.catch((error: unknown) => {
      throw this.#named(error);
    });
  }

  /** An error of the file system with the path that the operator knows. */
  #named(error: unknown): unknown {
    const known = `${this.place === '/' ? '' : this.place}/`;
    if (error instanceof Error) error.message = error.message.replace(/\/proc\/self\/fd\/\d+\/(\.(?='))?/, () => known);
    return error;
  }
}
