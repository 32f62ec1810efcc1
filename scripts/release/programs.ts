import { cp, readFile } from 'node:fs/promises';
import path from 'node:path';
import { runTool } from '../image/run-tool.ts';
import { writeArchive } from './archive.ts';
import { type Release, root } from './release-of.ts';

const dist = path.join(root, 'dist');
/** Every program with what it loads, and the licences. */
const programs = [
  'THIRD-PARTY-LICENSES.txt',
  'csi-provisioner-traces.mjs',
  'csi-provisioner.bundle.cjs',
  'csi-provisioner.bundle.cjs.map',
  'csi-provisioner.js',
  'csi-sandbox.js',
  'kubectl-csi.cjs',
  'nfs-provisioner.js',
  'nfs-subdir-external-provisioner.js',
];

const node = (script: string, ...args: string[]): Promise<string> =>
  runTool(process.execPath, [path.join(root, 'scripts', script), ...args]);

/** Builds the programs, and puts them into one archive. */
export async function addBundles({ output, version, epoch }: Release): Promise<void> {
  console.log('Building the programs');
  await node('build.ts');
  const file = path.join(output, `csi-provisioner-${version}-programs.tar.gz`);
  await writeArchive(file, { folder: dist, paths: programs, epoch });
}

export async function addKubectlPlugin({ output, version, home }: Release): Promise<void> {
  const uri = `${home}/releases/download/${version}/kubectl-csi.tar.gz`;
  await node('krew.ts', '--uri', uri);
  for (const file of ['kubectl-csi.tar.gz', 'csi.yaml']) await cp(path.join(dist, file), path.join(output, file));
}

export async function addNpmPackage({ output }: Release): Promise<void> {
  console.log('Packing the npm package');
  await runTool('npm', ['run', '--prefix', root, 'build:lib']);
  await node('npm-package.ts', '--built', '--out', output);
}

/** What a bill of materials lists of kinds of components, in words. */
export async function billSummary(file: string): Promise<string> {
  const { components } = JSON.parse(await readFile(file, 'utf8')) as { components: { purl: string }[] };
  const count = (kind: string): number => components.filter(({ purl }) => purl.startsWith(`pkg:${kind}/`)).length;
  return `${count('npm')} npm packages, ${count('deb')} Debian packages`;
}
