import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** A package of the npm registry, of which something is in a program. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** As its package.json has it, in SPDX's form. */
  readonly license?: string;
  /** Of the package as the registry serves it, in hexadecimal. */
  readonly sha512?: string;
}

/** Folders of packages, sorted. @param files - paths of files, some of which are in node_modules. */
export function packageFolders(files: Iterable<string>): string[] {
  const folders = new Set<string>();
  for (const file of files) {
    const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
    if (folder !== undefined) folders.add(folder);
  }
  return [...folders].toSorted();
}

/**
 * @param root - the folder that paths are relative to; its package-lock.json has the checksums.
 * @param inputs - paths of the bundled files, as esbuild's metafile has them.
 */
export async function bundledPackages(root: string, inputs: Iterable<string>): Promise<BundledPackage[]> {
  const { packages: locked } = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity?: string } | undefined>;
  };
  return await Promise.all(
    packageFolders(inputs).map(async (folder) => {
      const manifest = await readFile(path.join(root, folder, 'package.json'), 'utf8');
      const { name, version, license } = JSON.parse(manifest) as BundledPackage;
      const sha512 = hexOf(locked[folder]?.integrity);
      return { name, version, ...(license !== undefined && { license }), ...(sha512 !== undefined && { sha512 }) };
    }),
  );
}

function hexOf(integrity: string | undefined): string | undefined {
  const [, base64] = /^sha512-(\S+)/.exec(integrity ?? '') ?? [];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64').toString('hex');
}
