import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiServer, Cluster, ClusterOptions } from './cluster.ts';
import { attachToCluster } from './kubernetes-cluster.ts';
import { programFile } from './program-file.ts';
import { startAnnounced, type StartedProcess } from './started-process.ts';

const attributesClassesResource = 'volumeattributesclasses.storage.k8s.io';
const program = programFile('sandbox');

/**
 * Starts the sandbox as a process of its own, without nodes: tests make the nodes they need.
 *
 * @param options.restartable - it keeps its objects in a file, so that it may be killed and started again. Tokens do not
 *   outlive it, so that everybody may do everything then.
 * @param options.rbac - the sidecar has its rights alone, over TLS, as on a real cluster; default unless restartable.
 * @param options.faults - faults can be injected under `/embedded`.
 */
export async function startSandbox({
  restartable = false,
  rbac = !restartable,
  faults = false,
  attributesClasses,
}: { restartable?: boolean; rbac?: boolean; faults?: boolean } & Pick<
  ClusterOptions,
  'attributesClasses'
> = {}): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'e2e-sandbox-'));
  const adminKubeconfig = join(folder, 'kubeconfig');
  const launch = async (port: string): Promise<{ process: StartedProcess; announced: { url: string } }> =>
    await startAnnounced({
      program: process.execPath,
      args: [
        program,
        `--port=${port}`,
        `--kubeconfig=${adminKubeconfig}`,
        '--nodes=0',
        ...(restartable ? [`--data=${join(folder, 'objects')}`] : []),
        ...(rbac ? ['--rbac'] : []),
        ...(faults ? ['--faults'] : []),
        ...(attributesClasses === undefined ? [] : [`--serve=${attributesClassesResource}=${attributesClasses}`]),
      ],
    });
  let { process: sandbox, announced } = await launch('0');
  let earlierLog = '';
  const apiServer: ApiServer = {
    kill: () => sandbox.stop('SIGKILL'),
    standStill: () => void process.kill(sandbox.pid, 'SIGSTOP'),
    goOn: () => void process.kill(sandbox.pid, 'SIGCONT'),
    async restart() {
      earlierLog += sandbox.log();
      ({ process: sandbox, announced } = await launch(new URL(announced.url).port));
    },
  };
  const accounts: Cluster = rbac
    ? await attachToCluster(adminKubeconfig)
    : {
        name: 'sandbox',
        adminKubeconfig,
        sidecarNamespace: 'default',
        ...(restartable && { apiServer }),
        sidecarKubeconfig: () => Promise.resolve(adminKubeconfig),
        grantSidecar: () => Promise.resolve(() => Promise.resolve()),
        accountKubeconfig: () => Promise.resolve(adminKubeconfig),
        log: () => '',
        stop: () => Promise.resolve(),
      };
  return {
    ...accounts,
    name: 'sandbox',
    log: () => earlierLog + sandbox.log(),
    async stop() {
      await accounts.stop();
      await sandbox.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
