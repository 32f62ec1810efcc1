import { execFileSync } from 'node:child_process';
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { mkdtempSync, rmSync, truncateSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from './eventually.ts';

/** A file system of its own that can be frozen: whatever writes in it hangs then, as with a server that is gone. */
export class FreezableFolder implements Disposable {
  readonly #folder: string;
  #isFrozen = false;
  #filled = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Undefined where this machine permits no mount. */
  static mount(): FreezableFolder | undefined {
    const folder = mkdtempSync(path.join(tmpdir(), 'freezable-'));
    const image = path.join(folder, 'image');
    const made = new FreezableFolder(folder);
    try {
      writeFileSync(image, '');
      truncateSync(image, 32 * 1024 * 1024);
      mkdirSync(made.path);
      execFileSync('mkfs.ext4', ['-q', image], { stdio: 'ignore' });
      execFileSync('mount', ['-o', 'loop', image, made.path], { stdio: 'ignore' });
      rmSync(path.join(made.path, 'lost+found'), { recursive: true });
      return made;
    } catch {
      rmSync(folder, { recursive: true, force: true });
      return undefined;
    }
  }

  get path(): string {
    return path.join(this.#folder, 'mount');
  }

  freeze(): void {
    execFileSync('fsfreeze', ['--freeze', this.path]);
    this.#isFrozen = true;
  }

  thaw(): void {
    if (this.#isFrozen) execFileSync('fsfreeze', ['--unfreeze', this.path]);
    this.#isFrozen = false;
  }

  /** @param mode - `ro`: nothing can be written in it, until it is `rw` again. Waits while a file is open for writing. */
  async remount(mode: 'ro' | 'rw'): Promise<void> {
    await eventually(() => execFileSync('mount', ['-o', `remount,${mode}`, this.path], { stdio: 'ignore' }));
  }

  /** Until nothing fits into the file system, not even the smallest file. @param directory - in it: where the files are put. */
  async fill(directory: string): Promise<void> {
    for (const bytes of [1024 * 1024, 1024, 1]) {
      const chunk = Buffer.alloc(bytes, 'x');
      await assert.rejects(
        async () => {
          for (;;) await writeFile(path.join(directory, `fill-${(this.#filled += 1)}`), chunk);
        },
        { code: 'ENOSPC' },
      );
    }
  }

  [Symbol.dispose](): void {
    this.thaw();
    execFileSync('umount', ['--lazy', this.path]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
