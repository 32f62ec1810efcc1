import { existsSync } from 'node:fs';
import { cp, mkdtemp, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { runTool } from '../image/run-tool.ts';
import { writeArchive } from './archive.ts';
import { RefusedRelease, type Release, root } from './release-of.ts';

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

const charts = path.join(root, 'deploy/charts');
/** Prints where the helm is that its Go module makes. */
const buildHelm = path.join(root, 'test/support/helm/build.sh');

/**
 * Packages each chart with the real helm. Its archive has the time of day in it, so what is in it goes into one without.
 *
 * @throws {RefusedRelease} when a chart installs images of another version.
 */
export async function addCharts(release: Release, parent: string): Promise<void> {
  if (!existsSync(charts)) return;
  console.log('Packaging the charts');
  const helm = (await runTool(buildHelm, [])).trim();
  for (const name of (await readdir(charts)).toSorted()) {
    if (existsSync(path.join(charts, name, 'Chart.yaml'))) await addChart(release, { helm, parent, name });
  }
}

async function addChart(
  { output, version, epoch }: Release,
  { helm, parent, name }: { helm: string; parent: string; name: string },
): Promise<void> {
  const chart = path.join(charts, name);
  const shown = await runTool(helm, ['show', 'chart', chart]);
  const [, installed] = /^appVersion: *["']?([^"'\n]+)/m.exec(shown) ?? [];
  if (installed !== version)
    throw new RefusedRelease(`the chart ${name} has appVersion ${installed ?? 'none'}, not ${version}`);
  const [packed, unpacked] = [await mkdtemp(path.join(parent, 'chart-')), await mkdtemp(path.join(parent, 'chart-'))];
  await runTool(helm, ['package', chart, '--destination', packed]);
  for (const file of await readdir(packed)) {
    await runTool('tar', ['--extract', '--file', path.join(packed, file), '--directory', unpacked]);
    await writeArchive(path.join(output, file), { folder: unpacked, paths: [name], epoch });
  }
}
