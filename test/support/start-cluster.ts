/**
 * The cluster of end-to-end tests and scripts. For tests the environment picks it, so that the same test files hold the
 * sandbox to what the real control plane does:
 *
 * - `E2E_TARGET`: `sandbox` (default) or `kubernetes`.
 * - `E2E_KUBECONFIG`: a running control plane to use for `kubernetes`; without it each test file starts its own.
 */
import type { Cluster, ClusterOptions } from './cluster.ts';
import { attachToCluster, startKubernetes } from './kubernetes-cluster.ts';
import { startSandbox } from './sandbox-cluster.ts';

/** Starts the cluster that the environment asks for, or connects to it. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { env = process.env, featureGates = [], attributesClasses, kubernetes, secondServer, auditLog } = options;
  const restartable = options.ownCluster === true || featureGates.length > 0;
  const target = options.target ?? (env['E2E_TARGET'] || 'sandbox');
  if (target === 'sandbox') return await startSandbox({ restartable, attributesClasses, ...options.sandbox });
  if (target !== 'kubernetes') throw new Error(`E2E_TARGET is ${target}, neither sandbox nor kubernetes`);
  const kubeconfig = env['E2E_KUBECONFIG'] ?? '';
  const isOwn = [options.target, attributesClasses, kubernetes, secondServer, auditLog].some(
    (option) => option !== undefined,
  );
  const ownCluster = restartable || isOwn || kubeconfig === '';
  return ownCluster ? await startKubernetes(options) : await attachToCluster(kubeconfig);
}
