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

/**
 * A Markdown page as it is shipped: its links to files that are not shipped with it go to the repository.
 *
 * @param page - its text.
 * @param options.file - where it is in the repository.
 * @param options.isShipped - whether a path of the repository is in the package.
 * @param options.home - the repository at the released version, such as `https://git.example.com/o/r/blob/v1.0.0`.
 */
export function shippedPage(
  page: string,
  { file, isShipped, home }: { file: string; isShipped: (file: string) => boolean; home: string },
): string {
  return page.replaceAll(/\]\(([^)\s]+)\)/g, (whole, target: string) => {
    if (/^([a-z]+:|#)/.test(target)) return whole;
    const [, linked = '', anchor = ''] = /^([^#]*)(#.*)?$/.exec(target) ?? [];
    const inRepository = path.posix.join(path.posix.dirname(file), linked).replace(/\/$/, '');
    return isShipped(inRepository) ? whole : `](${home}/${inRepository}${anchor})`;
  });
}
