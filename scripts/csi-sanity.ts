/**
 * Runs csi-sanity, the CSI community's own test suite for drivers, against the sandbox's hostpath driver.
 *
 *   node scripts/csi-sanity.ts            mount volumes: with everything, without attachment, without staging
 *   node scripts/csi-sanity.ts --block    block volumes as well; needs loop devices
 *
 * Needs the permission to mount (root), and Go once: the suite is compiled from the version pinned in test/sandbox/csi-sanity and
 * kept below ${XDG_CACHE_HOME:-~/.cache}. Exits 1 when a test fails, after naming it; names each skipped test and why.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startDriver } from '../test/support/driver-process.ts';
import { compileProgram } from './go-module.ts';
import { scriptCommand } from './script-command.ts';

/** One way to run the suite. */
interface Variant {
  name: string;
  driverFlags: string[];
  suiteFlags: string[];
}

const mountVariants: Variant[] = [
  { name: 'everything', driverFlags: ['--attach', '--topology', 'zone=a'], suiteFlags: [] },
  { name: 'no attachment, no topology', driverFlags: [], suiteFlags: [] },
  { name: 'no staging', driverFlags: ['--capabilities-off', 'STAGE_UNSTAGE_VOLUME'], suiteFlags: [] },
];
const blockVariant: Variant = {
  name: 'block volumes',
  driverFlags: ['--attach'],
  suiteFlags: ['--csi.testvolumeaccesstype=block'],
};

/** What ginkgo's JSON report says of a test. */
interface SpecReport {
  ContainerHierarchyTexts: string[] | null;
  LeafNodeText: string;
  LeafNodeType: string;
  State: string;
  Failure?: { Message?: string };
}

/** @returns whether all tests that ran have passed. */
async function runVariant(program: string, variant: Variant): Promise<boolean> {
  const folder = await mkdtemp(path.join(tmpdir(), 'csi-sanity-'));
  const driver = await startDriver({ driverName: 'hostpath.csi.k8s.io', folder, flags: variant.driverFlags });
  try {
    const report = path.join(folder, 'report.json');
    const args = [
      `--csi.endpoint=unix://${folder}/csi.sock`,
      `--csi.mountdir=${folder}/mount`,
      `--csi.stagingdir=${folder}/staging`,
      `--ginkgo.json-report=${report}`,
      '--ginkgo.no-color',
      ...variant.suiteFlags,
    ];
    const running = spawn(program, args, { stdio: 'ignore' });
    await once(running, 'exit');
    const [result] = JSON.parse(await readFile(report, 'utf8')) as { SpecReports: SpecReport[] | null }[];
    const passed = showReport(variant.name, result?.SpecReports ?? []);
    if (!passed) console.error(driver.log());
    return passed && running.exitCode === 0;
  } finally {
    await driver.stop();
    await removeUnmounted(folder);
  }
}

function showReport(name: string, reports: SpecReport[]): boolean {
  const tests = reports.filter((report) => report.LeafNodeType === 'It');
  const inState = (...states: string[]): SpecReport[] => tests.filter((report) => states.includes(report.State));
  const skipped = inState('skipped', 'pending');
  const passed = inState('passed');
  const failed = tests.length - skipped.length - passed.length;
  console.log(`${name}: ${passed.length} passed, ${failed} failed, ${skipped.length} skipped`);
  for (const report of tests) {
    if (report.State === 'passed') continue;
    const title = [...(report.ContainerHierarchyTexts ?? []), report.LeafNodeText].join(' > ');
    const why = report.State === 'pending' ? 'switched off in the suite itself' : (report.Failure?.Message ?? '');
    console.log(`  ${report.State}: ${title}: ${why.replaceAll(/\s*\n\s*/g, ' ')}`);
  }
  return failed === 0 && passed.length > 0;
}

/** A test that failed may have left a mount behind; nothing below one may be deleted. */
async function removeUnmounted(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '');
  for (const target of mounts.filter((mount) => mount.startsWith(`${folder}/`)).reverse()) {
    await promisify(execFile)('umount', [target]);
  }
  await rm(folder, { recursive: true, force: true });
}

const options = scriptCommand(
  'npm run csi-sanity --',
  'Runs the conformance suite of the CSI community against the sample driver.',
)
  .option('--block', 'also with block volumes')
  .parse()
  .opts<{ block?: true }>();
const program = await compileProgram({
  name: 'csi-sanity',
  module: path.join(import.meta.dirname, '../test/sandbox/csi-sanity'),
  target: 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity',
  files: ['go.sum'],
  cache: 'csi-sanity',
});
for (const variant of options.block === true ? [...mountVariants, blockVariant] : mountVariants) {
  if (!(await runVariant(program, variant))) process.exitCode = 1;
}
