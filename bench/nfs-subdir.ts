/**
 * `npm run bench:nfs-subdir`: claims become directories and are deleted again, on the sandbox. Prints claims per second, and
 * the CPU time and memory of the provisioner as the kernel counts them. The journal is on, as with leader election.
 */
import { existsSync, readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { cpuMs, peakMb } from '../scripts/process-usage.ts';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { startProcess } from '../test/support/started-process.ts';
import { inParallel, Stage, until, untilReady } from '../test/support/stage.ts';
import { watchAll } from './bench-stage.ts';

const { claims: count } = scriptCommand(
  'npm run bench:nfs-subdir --',
  'Claims become directories and are deleted again.',
)
  .option('--claims <N>', 'how many', wholeNumber(), 1000)
  .parse()
  .opts<{ claims: number }>();
const provisioner = 'k8s-sigs.io/nfs-subdir-external-provisioner';
/** Requests at a time. */
const width = 10;

await using stage = await Stage.open({ name: 'bench', cluster: { target: 'sandbox', sandbox: { rbac: false } } });
const { boundClaims, volumeNames } = await watchAll(stage);
const mount = path.join(stage.folder, 'mount');
await mkdir(mount);
const program = await startProcess({
  program: process.execPath,
  args: [path.join(import.meta.dirname, '../dist/nfs-subdir-external-provisioner.js')],
  env: {
    NFS_SERVER: 'srv',
    NFS_PATH: '/exp',
    PROVISIONER_NAME: provisioner,
    MOUNT_POINT: mount,
    KUBECONFIG: stage.kubeconfig,
  },
});
stage.defer(() => program.stop());
await stage.createClass('nfs', provisioner, { parameters: { onDelete: 'delete' } });
await untilReady(program);

async function measured(what: string, act: (claim: { name: string }) => Promise<unknown>, isDone: () => boolean) {
  const [cpuBefore, fromMs] = [cpuMs(program.pid), performance.now()];
  await showing(
    () => `${count} claims ${what}`,
    async () => {
      await inParallel(count, width, (index) => act({ name: `claim-${index}` }));
      await until(what, isDone);
    },
  );
  const tookMs = performance.now() - fromMs;
  const perClaim = ((cpuMs(program.pid) - cpuBefore) / count).toFixed(2);
  console.log(
    `${count} claims ${what} in ${(tookMs / 1000).toFixed(1)} s: ${((count * 1000) / tookMs).toFixed(0)} per second, ` +
      `${perClaim} ms CPU each, at most ${peakMb(program.pid).toFixed(0)} MB resident`,
  );
}

await measured(
  'were bound',
  (claim) => stage.createClaim(claim, 'nfs', { size: '1Mi' }),
  () => boundClaims.size === count,
);
const made = readdirSync(mount).filter((name) => !name.startsWith('.')); // not the identity of the share
if (new Set(made).size !== count) throw new Error(`${made.length} directories for ${count} claims`);
await measured(
  'were deleted',
  (claim) => stage.deleteClaim(claim),
  () => volumeNames.size === 0,
);
const left = made.filter((name) => existsSync(path.join(mount, name)));
if (left.length > 0) throw new Error(`${left.length} directories are left`);
