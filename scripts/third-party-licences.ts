import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { packageFolders } from './bundled-packages.ts';

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
