import { readFile } from 'node:fs/promises';
import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

/** What of package.json is read. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly files: readonly string[];
  readonly dependencies: Readonly<Record<string, string>>;
  readonly repository: { readonly url: string };
  readonly [field: string]: unknown;
}

/** @param folder - of the repository. */
export async function readManifest(folder = root): Promise<Manifest> {
  return JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as Manifest;
}

/** The address of the repository for a browser, without a slash at its end. */
export function repositoryPage({ repository }: Pick<Manifest, 'repository'>): string {
  return repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
}
