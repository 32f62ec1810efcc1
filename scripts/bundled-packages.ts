import { readdir, readFile } from 'node:fs/promises';
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

/**
 * The licences of the packages that went into a bundle, as one text. Bundling drops the comments and files in which
 * most of them require to be passed on.
 *
 * @param root - the folder that paths are relative to.
 * @param inputs - paths of the bundled files, as esbuild's metafile has them.
 * @throws when a package brings no licence file: then somebody has to look.
 */
export async function thirdPartyLicences(root: string, inputs: Iterable<string>): Promise<string> {
  const texts: string[] = [];
  for (const folder of packageFolders(inputs)) texts.push(await licenceOf(path.join(root, folder)));
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}

async function licenceOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as {
    name: string;
    version: string;
    license?: string;
  };
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name} is in the bundle and brings no licence file`);
  const text = await readFile(path.join(folder, file), 'utf8');
  return `${name} ${version}${license === undefined ? '' : ` (${license})`}\n\n${text.trim()}\n`;
}
