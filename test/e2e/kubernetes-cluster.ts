/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  PatchStrategy,
  loadAllYaml,
  type KubernetesObject,
} from '@kubernetes/client-node';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { writeKubeconfig } from '../control-plane/kubeconfig.ts';
import type { Cluster } from './cluster.ts';

const rbacFile = join(import.meta.dirname, '../../deploy/rbac.yaml');
const serviceAccount = { namespace: 'default', name: 'csi-provisioner' };

/** Starts a real control plane of its own and grants the sidecar its rights. */
export async function startKubernetes(): Promise<Cluster> {
  const plane = await startControlPlane();
  try {
    const cluster = await attachToCluster(plane.adminKubeconfig);
    return {
      ...cluster,
      async stop() {
        await cluster.stop();
        await plane.stop();
      },
    };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

/** Uses a running control plane and grants the sidecar its rights, as `kubectl apply` would; safe to repeat. */
export async function attachToCluster(adminKubeconfig: string): Promise<Cluster> {
  const config = new KubeConfig();
  config.loadFromFile(adminKubeconfig);
  await applyManifests(config, await readFile(rbacFile, 'utf8'));
  const folder = await mkdtemp(join(tmpdir(), 'e2e-kubernetes-'));
  return {
    name: 'kubernetes',
    adminKubeconfig,
    sidecarNamespace: serviceAccount.namespace,
    async sidecarKubeconfig() {
      const path = join(folder, 'sidecar.kubeconfig');
      await writeKubeconfig(path, { ...serverOf(config), token: await requestToken(config) });
      return path;
    },
    log: () => '',
    stop: () => rm(folder, { recursive: true, force: true }),
  };
}

async function applyManifests(config: KubeConfig, yaml: string): Promise<void> {
  const api = KubernetesObjectApi.makeApiClient(config);
  for (const manifest of loadAllYaml(yaml) as KubernetesObject[]) {
    await api.patch(manifest, undefined, undefined, 'e2e', true, PatchStrategy.ServerSideApply);
  }
}

async function requestToken(config: KubeConfig): Promise<string> {
  const { status } = await config.makeApiClient(CoreV1Api).createNamespacedServiceAccountToken({
    ...serviceAccount,
    body: { spec: { audiences: [], expirationSeconds: 3600 } },
  });
  if (status?.token === undefined) throw new Error('the answer to the TokenRequest has no token');
  return status.token;
}

function serverOf(config: KubeConfig): { url: string; ca: string } {
  const cluster = config.getCurrentCluster();
  if (cluster?.caData === undefined) throw new Error('the kubeconfig embeds no certificate authority');
  return { url: cluster.server, ca: Buffer.from(cluster.caData, 'base64').toString() };
}
