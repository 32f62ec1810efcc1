/**
 * The cluster that the end-to-end tests run against. The environment picks it, so that the same test files hold the
 * sandbox to what the real control plane does:
 *
 * - `E2E_TARGET`: `sandbox` (default) or `kubernetes`.
 * - `E2E_KUBECONFIG`: a running control plane to use for `kubernetes`; without it each test file starts its own.
 */
import { attachToCluster, startKubernetes } from './kubernetes-cluster.ts';
import { startSandbox } from './sandbox-cluster.ts';

export interface Cluster {
  readonly name: 'sandbox' | 'kubernetes';
  /** Path of a kubeconfig with all rights. */
  readonly adminKubeconfig: string;
  /** Namespace of the sidecar's service account, its lease and its notes. */
  readonly sidecarNamespace: string;
  /** Path of a kubeconfig with the rights that `deploy/rbac.yaml` gives, no more. */
  sidecarKubeconfig(): Promise<string>;
  /** What the cluster's own programs wrote, for failed tests. */
  log(): string;
  stop(): Promise<void>;
}

/** Starts the cluster that the environment asks for, or connects to it. */
export async function startCluster(env: NodeJS.ProcessEnv = process.env): Promise<Cluster> {
  const target = env['E2E_TARGET'] || 'sandbox';
  if (target === 'sandbox') return await startSandbox();
  if (target !== 'kubernetes') throw new Error(`E2E_TARGET is ${target}, neither sandbox nor kubernetes`);
  const kubeconfig = env['E2E_KUBECONFIG'];
  return kubeconfig === undefined || kubeconfig === '' ? await startKubernetes() : await attachToCluster(kubeconfig);
}
