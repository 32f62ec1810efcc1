/**
 * `npm run bench:nfs-subdir`: claims become directories and are deleted again, on the sandbox. Prints claims per second, and
 * the CPU time and memory of the provisioner as the kernel counts them. The journal is on, as with leader election.
 */
import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxObject } from '../sandbox/api/client.ts';
import { startAnnounced, startProcess } from '../test/support/started-process.ts';
import { type ApiObject, KubeApi } from '../scripts/kube-api.ts';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';

const { claims: count } = scriptCommand(
  'npm run bench:nfs-subdir --',
  'Claims become directories and are deleted again.',
)
  .option('--claims <N>', 'how many', wholeNumber(), 1000)
  .parse()
  .opts<{ claims: number }>();
const root = path.join(import.meta.dirname, '..');
const provisioner = 'k8s-sigs.io/nfs-subdir-external-provisioner';
const ticksPerSecond = 100;

/** CPU time in milliseconds and the most memory that was resident in megabytes. */
async function usage(pid: number): Promise<{ cpuMs: number; peakMb: number }> {
  const stat = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const ticks = Number(stat[11]) + Number(stat[12]);
  return { cpuMs: (ticks * 1000) / ticksPerSecond, peakMb: Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1000 };
}

await using cleanup = new AsyncDisposableStack();
const folder = await mkdtemp(path.join(tmpdir(), 'bench-nfs-subdir-'));
cleanup.defer(() => rm(folder, { recursive: true, force: true }));
const kubeconfig = path.join(folder, 'kubeconfig');
const mount = await mkdtemp(path.join(folder, 'mount-'));
const { process: sandbox, announced } = await startAnnounced<{ url: string }>({
  program: process.execPath,
  args: [path.join(root, 'sandbox/main.ts'), `--kubeconfig=${kubeconfig}`, '--nodes=0'],
});
cleanup.defer(() => sandbox.stop());
const program = await startProcess({
  program: process.execPath,
  args: [path.join(root, 'dist/nfs-subdir-external-provisioner.js')],
  env: {
    NFS_SERVER: 'srv',
    NFS_PATH: '/exp',
    PROVISIONER_NAME: provisioner,
    MOUNT_POINT: mount,
    KUBECONFIG: kubeconfig,
  },
});
cleanup.defer(() => program.stop());
const api = new KubeApi(announced.url);
await api.create('storageclasses', {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'nfs' },
  provisioner,
  parameters: { onDelete: 'delete' },
});
while (!program.log().includes('Started provisioner controller')) await delay(20);

async function measured(what: string, begin: () => Promise<void>, isDone: () => Promise<boolean>): Promise<void> {
  const before = await usage(program.pid);
  const fromMs = performance.now();
  await showing(
    () => `${count} claims ${what}`,
    async () => {
      await begin();
      while (!(await isDone())) await delay(200);
    },
  );
  const tookMs = performance.now() - fromMs;
  const after = await usage(program.pid);
  const perClaim = ((after.cpuMs - before.cpuMs) / count).toFixed(2);
  console.log(
    `${count} claims ${what} in ${(tookMs / 1000).toFixed(1)} s: ${((count * 1000) / tookMs).toFixed(0)} per second, ` +
      `${perClaim} ms CPU each, at most ${after.peakMb.toFixed(0)} MB resident`,
  );
}

const names = Array.from({ length: count }, (_, index) => `claim-${index}`);
/** Ten requests at a time. */
async function forEach(act: (name: string) => Promise<unknown>): Promise<void> {
  const left = [...names];
  const work = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await act(name);
  };
  await Promise.all(Array.from({ length: 10 }, work));
}
const claim = (name: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default' },
  spec: { storageClassName: 'nfs', accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Mi' } } },
});
await measured(
  'were bound',
  () => forEach((name) => api.create('persistentvolumeclaims', claim(name))),
  async () => {
    const claims = await api.list<SandboxObject & { status?: { phase?: string } }>('persistentvolumeclaims', 'default');
    return claims.filter(({ status }) => status?.phase === 'Bound').length === count;
  },
);
const made = readdirSync(mount).filter((name) => !name.startsWith('.')); // not the identity of the share
if (new Set(made).size !== count) throw new Error(`${made.length} directories for ${count} claims`);
await measured(
  'were deleted',
  () => forEach((name) => api.delete('persistentvolumeclaims', name, 'default')),
  async () => (await api.list('persistentvolumes')).length === 0,
);
const left = made.filter((name) => existsSync(path.join(mount, name)));
if (left.length > 0) throw new Error(`${left.length} directories are left`);
