/** The process edge of `csi-sandbox`: flags in, a banner or the given command's exit code out. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import path from 'node:path';
import { ClusterFlagError, clusterUsage, parseClusterFlags } from './cluster-flags.ts';
import { type LocalCluster, startCluster } from './cluster.ts';
import { dieWithParent } from './die-with-parent.ts';
import { explanations } from './explain-leftovers.ts';
import { classNames } from './register-driver.ts';

/** Where and for how long a command runs. */
interface CommandOptions {
  /** For its environment. */
  readonly kubeconfig: string;
  /** Its abort reason is a signal, which the command gets; SIGKILL follows when that does not end it. */
  readonly signal: AbortSignal;
}

const graceMs = 10_000;

/** Runs the command with the cluster as its kubectl's. @returns its exit code. @throws when it cannot be started. */
async function runCommand(command: readonly string[], { kubeconfig, signal }: CommandOptions): Promise<number> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, KUBECONFIG: kubeconfig } });
  const unguard = child.pid === undefined ? () => undefined : dieWithParent(child.pid);
  let late: NodeJS.Timeout | undefined;
  signal.addEventListener('abort', () => {
    child.kill(signal.reason as NodeJS.Signals);
    late = setTimeout(() => child.kill('SIGKILL'), graceMs);
  });
  try {
    const [code, by] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return by === null ? (code ?? 1) : 128 + constants.signals[by];
  } finally {
    clearTimeout(late);
    unguard();
  }
}

/** A claim to begin with, as kubectl takes it. */
const exampleClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: photos
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 1Gi
`;

/** What somebody at a terminal needs to go on. */
function banner(cluster: LocalCluster, { manifest, rbac }: { manifest: string; rbac: boolean }): string {
  const { driver, driverSocket, kubeconfig, logFiles, url, volumesFolder } = cluster;
  const segments = Object.entries(driver.node?.segments ?? {}).map(([key, value]) => `${key}=${value}`);
  const place =
    driver.node === undefined
      ? 'no node service: the nodes carry no topology of it'
      : `node id ${driver.node.id}, ${segments.length === 0 ? 'no topology' : segments.join(', ')}`;
  const access = rbac
    ? `authorization as a cluster's: this kubeconfig may do everything, the sidecar what deploy/base/rbac.yaml grants`
    : `everybody may do everything; --rbac for a cluster's authorization`;
  return `
A Kubernetes API with a CSI driver and the csi-provisioner sidecar is up at ${url}

  driver   ${driver.name} ${driver.version} at ${driverSocket}
           ${place}
  classes  ${classNames.immediate} (default), ${classNames.late} (waits for the first pod)
  access   ${access}
  logs     ${logFiles.join('\n           ')}

In another terminal:

  export KUBECONFIG=${kubeconfig}
  kubectl apply -f ${manifest}
  kubectl get pvc,pv
  kubectl describe pvc photos
${volumesFolder === undefined ? '' : `  ls ${volumesFolder}\n`}  kubectl delete pvc photos

Ctrl-C ends it and removes everything.
`;
}

/** The parts that are programs by themselves, by the word that asks for one. */
const parts: Record<string, () => Promise<unknown>> = {
  api: () => import('../main.ts'),
  check: () => import('../check/main.ts'),
  'hostpath-driver': () => import('../hostpath/main.ts'),
};

async function main(argv: readonly string[]): Promise<number> {
  const asked = parseClusterFlags(argv);
  if (asked.kind === 'help') {
    process.stdout.write(clusterUsage);
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort(signal));
  const { signal } = stop;
  try {
    const report = (text: string): void => void process.stderr.write(`${text.trimEnd()}\n`);
    const progress = asked.command.length > 0 ? undefined : (text: string): void => report(`csi-sandbox: ${text}`);
    await using cluster = await startCluster({ ...asked.options, report, signal, ...(progress && { progress }) });
    if (asked.command.length > 0) {
      const code = await runCommand(asked.command, { kubeconfig: cluster.kubeconfig, signal });
      if (code !== 0 && !signal.aborted) await reportFailure(cluster, { code, report });
      return code;
    }
    const manifest = path.join(cluster.folder, 'example.yaml');
    await writeFile(manifest, exampleClaim);
    process.stdout.write(banner(cluster, { manifest, rbac: asked.rbac }));
    if (!signal.aborted) await once(signal, 'abort');
    return 0;
  } catch (error) {
    if (signal.aborted) return 128 + constants.signals[signal.reason as NodeJS.Signals];
    throw error;
  }
}

/** What is left undone, and where the logs are. */
async function reportFailure(
  cluster: LocalCluster,
  { code, report }: { code: number; report: (text: string) => void },
): Promise<void> {
  const explained = await explanations(cluster.leftovers(), cluster.kubeconfig);
  report(`\nThe command ended with exit code ${code}.`);
  for (const text of explained) report(`\n${text}`);
  cluster.keepLogs();
  report(`\nLogs: ${cluster.logFiles.join(', ')}`);
}

const part = parts[process.argv[2] ?? ''];
if (part !== undefined) {
  process.argv.splice(2, 1);
  await part();
} else {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`csi-sandbox: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = error instanceof ClusterFlagError ? 2 : 1;
  }
}
