import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { BundledPackage } from '../bundled-packages.ts';

/** The packages below a folder's node_modules, as npm notes them there. @throws when npm did not install them. */
export async function installedPackages(folder: string): Promise<BundledPackage[]> {
  const text = await readFile(path.join(folder, 'node_modules/.package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as {
    packages: Record<string, { version: string; license?: string }>;
  };
  return Object.entries(packages).map(([key, { version, license }]) => ({
    name: key.replace(/^.*node_modules\//, ''),
    version,
    ...(license !== undefined && { license }),
  }));
}
