/** `why` as a person calls it on the cluster of a scene, with no more rights than docs/why.md asks for. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { explainWhy } from '../../src/cli/why.ts';
import type { Cause } from '../../src/explain/causes/cause.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import type { Cluster } from './cluster.ts';
import { patienceMs } from './patience.ts';
import type { Scene } from './scene.ts';
import { sidecarCommand } from './sidecar-process.ts';

const root = join(import.meta.dirname, '../..');
const exitCodes: Readonly<Record<string, number>> = { bound: 0, waiting: 1, stuck: 2, unknown: 3 };

/** The account of `readerKubeconfig`. */
export function readerName(id: string): string {
  return `${id}-why`;
}

/** A kubeconfig of an account that has the role on the page and nothing else. @param id - part of its names. */
export async function readerKubeconfig(cluster: Cluster, id: string): Promise<string> {
  const page = await readFile(join(root, 'docs/why.md'), 'utf8');
  const role = /```yaml\n([^`]*kind: ClusterRole\n[^`]*)```/.exec(page)?.[1] ?? '';
  const name = readerName(id);
  const account = { namespace: cluster.sidecarNamespace, name };
  const manifests = [
    role.replace('name: csi-provisioner-why', `name: ${name}`),
    JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: account }),
    JSON.stringify({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      subjects: [{ kind: 'ServiceAccount', ...account }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    }),
  ].join('\n---\n');
  return await cluster.accountKubeconfig(manifests, account);
}

/** Runs the program, or the one that `E2E_SIDECAR` names. */
export async function why(kubeconfig: string, object: string): Promise<Explanation> {
  const [program, ...args] = [...sidecarCommand(), 'why', object, '-o', 'json', `--kubeconfig=${kubeconfig}`];
  const { code, stdout, stderr } = await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(program, args, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
  assert.notEqual(stdout, '', stderr);
  const explanation = JSON.parse(stdout) as Explanation;
  assert.equal(code, exitCodes[explanation.verdict], stderr);
  assert.equal(stderr, '');
  return explanation;
}

/** The same without a process of its own, for many claims; `E2E_SIDECAR` gets one all the same. */
export async function whyHere(kubeconfig: string, object: string): Promise<Explanation> {
  if (process.env['E2E_SIDECAR'] !== undefined) return await why(kubeconfig, object);
  const [stdout, stderr] = [[] as string[], [] as string[]];
  const code = await explainWhy({
    program: 'csi-provisioner why',
    args: [object, '-o', 'json', `--kubeconfig=${kubeconfig}`],
    environment: {},
    stdin: process.stdin,
    stdout: { write: (text) => stdout.push(text) },
    stderr: { write: (text) => stderr.push(text) },
    signal: AbortSignal.timeout(patienceMs),
  });
  const explanation = JSON.parse(stdout.join('')) as Explanation;
  assert.equal(code, exitCodes[explanation.verdict]);
  assert.deepEqual(stderr, []);
  return explanation;
}

/** The causes that `named` has waited for in this process. */
export const namedCauses = new Set<Cause>();

/** Waits until the program names the cause, as the cluster takes its time to come to a state. */
export async function named(
  scene: Pick<Scene, 'eventually'>,
  kubeconfig: string,
  object: string,
  cause: Cause,
): Promise<Explanation> {
  const explanation = await scene.eventually(async () => {
    const explanation = await why(kubeconfig, object);
    assert.equal(explanation.cause, cause, JSON.stringify(explanation));
    return explanation;
  });
  namedCauses.add(cause);
  return explanation;
}
