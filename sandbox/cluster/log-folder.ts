import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Where the logs are: a folder that was given, or a temporary one, removed at the end unless it is kept. */
export class LogFolder implements AsyncDisposable {
  readonly path: string;
  #isKept: boolean;

  private constructor(folder: string, isKept: boolean) {
    this.path = folder;
    this.#isKept = isKept;
  }

  /** Makes it where it is missing. */
  static async open(given: string | undefined): Promise<LogFolder> {
    if (given === undefined) return new LogFolder(await mkdtemp(path.join(tmpdir(), 'csi-logs-')), false);
    await mkdir(given, { recursive: true });
    return new LogFolder(path.resolve(given), true);
  }

  keep(): void {
    this.#isKept = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isKept) await rm(this.path, { recursive: true, force: true });
  }
}
