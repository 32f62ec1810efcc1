import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster } from './cluster.ts';
import { startAnnounced } from './started-process.ts';

const program = join(import.meta.dirname, '../../src/sandbox/main.ts');

/** Starts the sandbox as a process of its own, without nodes: tests make the nodes they need. */
export async function startSandbox(): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'e2e-sandbox-'));
  const adminKubeconfig = join(folder, 'kubeconfig');
  const { process: sandbox } = await startAnnounced<{ url: string; kubeconfig: string; pid: number }>({
    program: process.execPath,
    args: [program, '--port=0', `--kubeconfig=${adminKubeconfig}`, '--nodes=0'],
  });
  return {
    name: 'sandbox',
    adminKubeconfig,
    sidecarNamespace: 'default',
    sidecarKubeconfig: () => Promise.resolve(adminKubeconfig), // the sandbox has no roles: whoever asks may do all
    log: () => sandbox.log(),
    async stop() {
      await sandbox.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
