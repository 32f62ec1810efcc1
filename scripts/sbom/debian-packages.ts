import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** A package of Debian that is installed. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
}

/**
 * The packages that a system says it has; none where it says nothing.
 *
 * @param root - the root folder of a Debian, or of a distroless image, which has a file for each package.
 */
export async function debianPackages(root: string): Promise<DebianPackage[]> {
  const folder = path.join(root, 'var/lib/dpkg/status.d');
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => !name.endsWith('.md5sums')).map((name) => path.join(folder, name));
  const texts = await Promise.all(
    [path.join(root, 'var/lib/dpkg/status'), ...files].map((file) => readFile(file, 'utf8').catch(() => '')),
  );
  return texts
    .flatMap((text) => text.split(/\n\n+/))
    .flatMap(packageOf)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function packageOf(paragraph: string): DebianPackage[] {
  const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(paragraph)?.[1];
  const [name, version, architecture] = ['Package', 'Version', 'Architecture'].map(field);
  if (name === undefined || version === undefined || architecture === undefined) return [];
  return field('Status')?.endsWith(' installed') === false ? [] : [{ name, version, architecture }];
}
