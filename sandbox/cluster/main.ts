/** The process edge of `csi-sandbox`: flags in, a banner or the given command's exit code out. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import path from 'node:path';
import { banner, exampleClaim } from './banner.ts';
import { type LocalCluster, startCluster } from './cluster.ts';
import { ClusterFlagError, clusterUsage, parseClusterFlags } from './cluster-flags.ts';
import { explanations } from './explain-leftovers.ts';
import { runCommand } from './run-command.ts';

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
