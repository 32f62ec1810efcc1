import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { ExportServer } from '../../../provisioners/nfs-server/exports.ts';
import { exportsIn } from '../../../provisioners/nfs-server/ganesha-config.ts';

/** An NFS server that serves what it is told, as long as that stands in the file; it can refuse. */
export class ServerInMemory implements ExportServer {
  /** Directories by id. */
  readonly served = new Map<number, string>([[0, '/']]);
  refusal: Error | undefined;
  calls = 0;
  rereads = 0;
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  async activate({ id, path: directory }: { id: number; path: string }): Promise<void> {
    this.calls += 1;
    if (this.refusal !== undefined) throw this.refusal;
    const entries = exportsIn(await readFile(this.#file, 'utf8'));
    assert.ok(
      entries.some((entry) => entry.id === id && entry.path === directory),
      'it stands in the file already',
    );
    this.served.set(id, directory);
  }

  async deactivate({ id }: { id: number }): Promise<void> {
    await Promise.resolve();
    this.served.delete(id);
  }

  async reread(): Promise<void> {
    this.rereads += 1;
    if (this.refusal !== undefined) throw this.refusal;
    for (const { id, path } of exportsIn(await readFile(this.#file, 'utf8'))) this.served.set(id, path);
  }

  active(): Promise<ReadonlyMap<number, string>> {
    return Promise.resolve(this.served);
  }
}
