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
import { readAuditLog } from './control-plane/audit-log.ts';
import { startControlPlane, type ControlPlane, type FurtherApiServer } from './control-plane/control-plane.ts';
import { writeKubeconfig } from './control-plane/kubeconfig.ts';
import { programHelp } from './control-plane/program-help.ts';
import { findPrograms } from './control-plane/programs.ts';
import type {
  Cluster,
  ClusterOptions,
  SecondServerOptions,
  ServerOfPair,
  ServerPair,
  ServiceAccountName,
} from './cluster.ts';
import { startBalancer } from './tcp-balancer.ts';

const rbacFiles = ['base', 'components/secrets'].map((folder) =>
  join(import.meta.dirname, '../../deploy', folder, 'rbac.yaml'),
);
const unthrottled = ['--kube-api-qps=2000', '--kube-api-burst=2000'];
const sidecarAccount: ServiceAccountName = { namespace: 'default', name: 'csi-provisioner' };

/** Starts a real control plane of its own and grants the sidecar its rights. */
export async function startKubernetes(options: ClusterOptions = {}): Promise<Cluster> {
  const { secondServer } = options;
  const binDir = await findPrograms({ minor: options.kubernetes });
  const plane = await startControlPlane({
    binDir,
    extraArgs: await planeFlags(binDir, options),
    auditLog: options.auditLog === true || secondServer !== undefined,
  });
  try {
    const serverPair = secondServer && (await addServer(plane, secondServer));
    const sidecarUrl = serverPair && `https://127.0.0.1:${serverPair.balancer.port}`;
    const cluster = await attachToCluster(plane.adminKubeconfig, sidecarUrl);
    return {
      ...cluster,
      ...(serverPair && { serverPair }),
      etcdUrl: plane.etcdUrl,
      ...(plane.auditLogFile !== undefined && { requests: () => readAuditLog(plane.auditLogFile ?? '') }),
      apiServer: {
        kill: () => plane.killApiServer(),
        standStill: () => plane.signalApiServer('SIGSTOP'),
        goOn: () => plane.signalApiServer('SIGCONT'),
        restart: () => plane.restartApiServer(),
        backUp: () => plane.backUpEtcd(),
        restore: () => plane.restoreEtcd(),
        async upgrade(minor) {
          const next = await findPrograms({ minor });
          await plane.replacePrograms({ binDir: next, extraArgs: await planeFlags(next) });
        },
      },
      controllerManager: {
        stop: () => plane.stopControllerManager(),
        start: () => plane.startControllerManager(),
      },
      async stop() {
        await cluster.stop();
        await serverPair?.balancer[Symbol.asyncDispose]();
        await plane.stop();
      },
    };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

async function addServer(plane: ControlPlane, options: SecondServerOptions): Promise<ServerPair> {
  const binDir = await findPrograms({ minor: options.kubernetes });
  const second = await plane.addApiServer({ binDir, extraArgs: await planeFlags(binDir, options) });
  const serverOf = ({ adminKubeconfig, auditLogFile = '' }: FurtherApiServer): ServerOfPair => ({
    adminKubeconfig,
    requests: () => readAuditLog(auditLogFile),
  });
  return {
    balancer: await startBalancer([plane, second].map(({ url }) => Number(new URL(url).port))),
    servers: [serverOf(plane), serverOf(second)],
  };
}

async function planeFlags(
  binDir: string,
  options: ClusterOptions & Pick<SecondServerOptions, 'dropsAttributesClasses'> = {},
): Promise<Record<string, string[]>> {
  const { featureGates = [], attributesClasses, dropsAttributesClasses = false } = options;
  const gates = featureGates.map((name) => `${name}=true`);
  const classGate = 'VolumeAttributesClass';
  if (dropsAttributesClasses) {
    gates.push(`${classGate}=false`);
  } else if (attributesClasses !== undefined && (await programHelp(binDir, 'kube-apiserver')).knowsGate(classGate)) {
    gates.push(`${classGate}=true`);
  }
  const gateFlags = gates.length === 0 ? [] : [`--feature-gates=${gates.join(',')}`];
  const served = ['v1', 'v1beta1'].map(
    (version) => `storage.k8s.io/${version}/volumeattributesclasses=${String(version === attributesClasses)}`,
  );
  return {
    'kube-apiserver': [
      ...gateFlags,
      ...(attributesClasses === undefined ? [] : [`--runtime-config=${served.join(',')}`]),
    ],
    // By default the controller manager makes 20 requests a second, and so would set the pace of everything with many claims.
    'kube-controller-manager': [...unthrottled, ...gateFlags],
    'kube-scheduler': [...unthrottled, ...gateFlags],
  };
}

/**
 * Uses a running control plane and grants the sidecar its rights, as `kubectl apply` would; safe to repeat.
 *
 * @param sidecarUrl - where sidecars connect to. Default: as the administrator.
 */
export async function attachToCluster(adminKubeconfig: string, sidecarUrl?: string): Promise<Cluster> {
  const config = new KubeConfig();
  config.loadFromFile(adminKubeconfig);
  for (const file of rbacFiles) await applyManifests(config, await readFile(file, 'utf8'));
  const folder = await mkdtemp(join(tmpdir(), 'e2e-kubernetes-'));
  const kubeconfigOf = async (account: ServiceAccountName): Promise<string> => {
    const path = join(folder, `${account.namespace}-${account.name}.kubeconfig`);
    const { url, ca } = serverOf(config);
    await writeKubeconfig(path, { url: sidecarUrl ?? url, ca, token: await requestToken(config, account) });
    return path;
  };
  return {
    name: 'kubernetes',
    adminKubeconfig,
    sidecarNamespace: sidecarAccount.namespace,
    sidecarKubeconfig: () => kubeconfigOf(sidecarAccount),
    async grantSidecar(manifests) {
      await applyManifests(config, manifests);
      return () => deleteManifests(config, manifests);
    },
    async accountKubeconfig(manifests, account) {
      await applyManifests(config, manifests);
      return await kubeconfigOf(account);
    },
    log: () => '',
    stop: () => rm(folder, { recursive: true, force: true }),
  };
}

async function applyManifests(config: KubeConfig, yaml: string): Promise<void> {
  const api = KubernetesObjectApi.makeApiClient(config);
  for (const manifest of parsed(yaml)) {
    await api.patch(manifest, undefined, undefined, 'e2e', true, PatchStrategy.ServerSideApply);
  }
}

async function deleteManifests(config: KubeConfig, yaml: string): Promise<void> {
  const api = KubernetesObjectApi.makeApiClient(config);
  for (const manifest of parsed(yaml)) await api.delete(manifest);
}

/** The objects of a file below deploy/, with the cluster-wide names that kustomize would make of them. */
function parsed(yaml: string): KubernetesObject[] {
  return loadAllYaml(yaml.replaceAll('%NAMESPACE', sidecarAccount.namespace)) as KubernetesObject[];
}

async function requestToken(config: KubeConfig, account: ServiceAccountName): Promise<string> {
  const { status } = await config.makeApiClient(CoreV1Api).createNamespacedServiceAccountToken({
    ...account,
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
