import { open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { errnoOf } from '../../src/index.ts';

/** A text file that others may read at any time: they see it as it was or as it will be, also after a power failure. */
export class AtomicFile {
  readonly path: string;
  readonly #mode: number;

  /** @param mode - permissions of the file. Default 0600. */
  constructor(file: string, mode = 0o600) {
    this.path = file;
    this.#mode = mode;
  }

  /** The text; undefined when there is no file. */
  async read(): Promise<string | undefined> {
    try {
      return await readFile(this.path, 'utf8');
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Replaces the text as a whole. Calls must not overlap. */
  async write(text: string): Promise<void> {
    const folder = path.dirname(this.path);
    const temporary = path.join(folder, `.${path.basename(this.path)}.new`);
    try {
      const handle = await open(temporary, 'w', this.#mode);
      try {
        await handle.chmod(this.#mode); // one that a crash left may have others
        await handle.writeFile(text);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(temporary, this.path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(folder);
  }
}

/** Makes names in a folder survive a power failure. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
