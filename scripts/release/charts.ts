import { existsSync } from 'node:fs';
import { mkdtemp, readdir } from 'node:fs/promises';
import path from 'node:path';
import { runTool } from '../image/run-tool.ts';
import { writeArchive } from './archive.ts';
import { RefusedRelease, type Release, root } from './release-of.ts';

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
