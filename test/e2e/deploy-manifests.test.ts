/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  PatchStrategy,
  loadAllYaml,
  loadYaml,
  type KubernetesObject,
  type V1ClusterRole,
  type V1ClusterRoleBinding,
  type V1DaemonSet,
  type V1CSIDriver,
  type V1Deployment,
  type V1Namespace,
  type V1PodDisruptionBudget,
  type V1Service,
  type V1StorageClass,
} from '@kubernetes/client-node';
import { connectAdmin } from '../support/admin.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { findKubectl, kustomize } from '../support/kubectl.ts';
import { plainJson } from './plain-json.ts';

const folder = join(import.meta.dirname, '../../deploy');
const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');

const overlays = (await readdir(join(folder, 'overlays'))).toSorted().map((name) => `overlays/${name}`);

const kubectl = await findKubectl();
const needsKubectl = {
  skip: kubectl === undefined ? 'no kubectl in KUBE_BIN_DIR or the kube-bin cache folder' : false,
};

/** All objects of a kustomization. */
async function built(name: string): Promise<KubernetesObject[]> {
  return loadAllYaml(await kustomize(kubectl ?? '', join(folder, name))) as KubernetesObject[];
}

function ofKind<T extends KubernetesObject>(objects: KubernetesObject[], kind: string): T {
  const found = objects.filter((object) => object.kind === kind);
  assert.equal(found.length, 1, `one ${kind}`);
  return found[0] as T;
}

const labelsOf = (deployment: V1Deployment): unknown => deployment.spec?.template.metadata?.labels;

describe('the manifests in deploy/', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());

  /** Server-side apply as a dry run: it refuses fields that it does not know. */
  const check = async (manifest: KubernetesObject): Promise<void> => {
    const { objects } = connectAdmin(cluster.adminKubeconfig);
    const applied = await objects.patch(manifest, undefined, 'All', 'e2e', true, PatchStrategy.ServerSideApply);
    assert.equal(applied.metadata?.name, manifest.metadata?.name);
  };

  /** The operator's kinds are not built into Kubernetes. */
  const isUnknown = ({ apiVersion }: KubernetesObject): boolean => apiVersion === 'monitoring.coreos.com/v1';

  test('are accepted by the API server, field by field', async () => {
    const { resources } = loadYaml<{ resources: string[] }>(await read('base/kustomization.yaml'));
    assert.ok(resources.length > 0);
    for (const file of [...resources.map((name) => `base/${name}`), 'example.yaml']) {
      for (const manifest of loadAllYaml(await read(file)) as KubernetesObject[]) await check(manifest);
    }
  });

  for (const name of ['.', ...overlays]) {
    test(`${name} is built by kubectl and accepted by the API server`, needsKubectl, async () => {
      const { core } = connectAdmin(cluster.adminKubeconfig);
      const objects = await built(name);
      const own = objects.find(({ kind }) => kind === 'Namespace') as V1Namespace | undefined;
      // A dry run makes nothing, and what is in a namespace needs it.
      if (own !== undefined) await core.createNamespace({ body: own });
      for (const manifest of objects) {
        if (!isUnknown(manifest)) await check(manifest);
      }
      if (own !== undefined) await core.deleteNamespace({ name: own.metadata?.name ?? '' });
    });
  }

  test('with leader election run two replicas, and a drain leaves one', needsKubectl, async () => {
    const objects = await built('overlays/leader-election');
    const deployment = ofKind<V1Deployment>(objects, 'Deployment');
    assert.equal(deployment.spec?.replicas, 2);
    assert.equal(deployment.spec.strategy?.type, 'RollingUpdate');
    const sidecar = deployment.spec.template.spec?.containers.find(({ name }) => name === 'csi-provisioner');
    assert.ok(sidecar?.args?.includes('--leader-election'));
    const { spec } = ofKind<V1PodDisruptionBudget>(objects, 'PodDisruptionBudget');
    assert.equal(spec?.minAvailable, 1);
    assert.deepEqual(spec.selector?.matchLabels, labelsOf(deployment));
  });

  test('with capacity name flags, environment and rights that belong together', needsKubectl, async () => {
    const objects = await built('overlays/capacity');
    const { spec } = ofKind<V1Deployment>(objects, 'Deployment');
    const [sidecar] = spec?.template.spec?.containers ?? [];
    assert.deepEqual(sidecar?.args?.slice(-2), ['--enable-capacity', '--capacity-ownerref-level=2']);
    const fields = sidecar.env?.map(({ name, valueFrom }) => [name, valueFrom?.fieldRef?.fieldPath]);
    assert.deepEqual(Object.fromEntries(fields ?? []), {
      POD_NAMESPACE: 'metadata.namespace',
      NAMESPACE: 'metadata.namespace',
      POD_NAME: 'metadata.name',
    });
    assert.equal(ofKind<V1CSIDriver>(objects, 'CSIDriver').spec.storageCapacity, true);
  });

  test('with monitoring lead from the ServiceMonitor to the port of the sidecar', needsKubectl, async () => {
    const objects = await built('overlays/monitored');
    const deployment = ofKind<V1Deployment>(objects, 'Deployment');
    const service = ofKind<V1Service>(objects, 'Service');
    const monitor = ofKind<KubernetesObject & { spec: { selector: object; endpoints: { port: string }[] } }>(
      objects,
      'ServiceMonitor',
    );
    assert.deepEqual(monitor.spec.selector, { matchLabels: service.metadata?.labels });
    assert.equal(monitor.metadata?.namespace, service.metadata?.namespace);
    assert.deepEqual(service.spec?.selector, labelsOf(deployment));
    const port = service.spec?.ports?.find(({ name }) => name === monitor.spec.endpoints[0]?.port);
    const ports = deployment.spec?.template.spec?.containers.flatMap((container) => container.ports ?? []);
    assert.ok(port !== undefined && ports?.some(({ name }) => name === port.targetPort));
  });

  test(
    'with topology name one set of zones, and grant the rights to the account of the sidecar',
    needsKubectl,
    async () => {
      const objects = await built('overlays/topology');
      const deployment = ofKind<V1Deployment>(objects, 'Deployment');
      const driver = deployment.spec?.template.spec?.containers.find(({ name }) => name === 'hostpath-driver');
      const served = driver?.args?.filter((arg) => arg.startsWith('--topology='));
      const classes = objects.filter(({ kind }) => kind === 'StorageClass') as V1StorageClass[];
      const [zonal, ...others] = classes.filter(({ allowedTopologies }) => allowedTopologies !== undefined);
      assert.deepEqual(others, []);
      assert.equal(zonal?.volumeBindingMode, 'WaitForFirstConsumer');
      const allowed = zonal.allowedTopologies?.flatMap(({ matchLabelExpressions = [] }) =>
        matchLabelExpressions.flatMap(({ key, values }) => values.map((value) => `--topology=${key}=${value}`)),
      );
      assert.deepEqual(served, allowed);
      const base = loadYaml<V1Deployment>(await read('base/deployment.yaml')).spec?.template.spec?.containers[1];
      assert.deepEqual(driver?.args?.slice(0, base?.args?.length), base?.args);
      const accounts = objects.filter(({ kind }) => kind === 'ClusterRoleBinding') as V1ClusterRoleBinding[];
      assert.equal(accounts.length, 2);
      for (const { subjects } of accounts) {
        assert.deepEqual(plainJson(subjects ?? []), [
          {
            kind: 'ServiceAccount',
            name: deployment.spec?.template.spec?.serviceAccountName,
            namespace: deployment.metadata?.namespace,
          },
        ]);
      }
    },
  );

  test('with node deployment run on every node, which they name, and read no nodes', needsKubectl, async () => {
    const objects = await built('overlays/node-deployment');
    const { spec } = ofKind<V1DaemonSet>(objects, 'DaemonSet');
    const pod = spec?.template.spec;
    for (const { env = [] } of pod?.containers ?? []) {
      const nodeName = env.find(({ name }) => name === 'NODE_NAME');
      assert.equal(nodeName?.valueFrom?.fieldRef?.fieldPath, 'spec.nodeName');
    }
    const args = pod?.containers.find(({ name }) => name === 'csi-provisioner')?.args;
    assert.ok(args?.includes('--node-deployment'));
    assert.ok(!args?.includes('--leader-election'));
    assert.equal(spec?.updateStrategy?.rollingUpdate?.maxSurge, 0);
    const { rules } = ofKind<V1ClusterRole>(objects, 'ClusterRole');
    const resources = rules?.flatMap((rule) => rule.resources ?? []) ?? [];
    assert.ok(resources.includes('persistentvolumeclaims'));
    for (const unused of ['nodes', 'csinodes', 'leases']) assert.ok(!resources.includes(unused), unused);
    const { subjects } = ofKind<V1ClusterRoleBinding>(objects, 'ClusterRoleBinding');
    assert.equal(subjects?.[0]?.name, pod?.serviceAccountName);
    const driver = pod?.containers.find(({ name }) => name === 'hostpath-driver')?.args;
    const provisioners = [
      ofKind<V1StorageClass>(objects, 'StorageClass').provisioner,
      ofKind(objects, 'CSIDriver').metadata?.name,
    ];
    for (const name of provisioners) assert.ok(driver?.includes(`--driver-name=${name ?? ''}`));
  });

  test('describe a Pod that the strictest Pod Security Standard admits', async () => {
    const { spec } = loadYaml<V1Deployment>(await read('base/deployment.yaml'));
    await checkPod(cluster, spec, {
      name: 'e2e-restricted',
      labels: { 'pod-security.kubernetes.io/enforce': 'restricted' },
    });
  });

  test('with restricted Pod security hold their own Pod to it', needsKubectl, async () => {
    const objects = await built('overlays/restricted');
    const { metadata } = ofKind<V1Namespace>(objects, 'Namespace');
    const { spec, metadata: where } = ofKind<V1Deployment>(objects, 'Deployment');
    assert.equal(where?.namespace, metadata?.name);
    await checkPod(cluster, spec, { name: 'e2e-restricted-overlay', labels: metadata?.labels ?? {} });
  });
});

/** Makes a namespace with these labels, and sees that it admits the Pod and, where it is real, refuses a worse one. */
async function checkPod(
  cluster: Cluster,
  spec: V1Deployment['spec'],
  { name: namespace, labels }: { name: string; labels: Record<string, string> },
): Promise<void> {
  const { core } = connectAdmin(cluster.adminKubeconfig);
  await core.createNamespace({ body: { metadata: { name: namespace, labels } } });
  await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'csi-provisioner' } } });
  const template = spec?.template.spec;
  assert.ok(template);
  const create = (change: object) =>
    core.createNamespacedPod({
      namespace,
      dryRun: 'All',
      body: { metadata: { name: 'csi-provisioner' }, spec: Object.assign({}, template, change) },
    });
  await eventually(() => create({}), { timeoutMs: 10_000 });
  if (cluster.name === 'kubernetes') await assert.rejects(create({ hostPID: true }), /violates PodSecurity/);
  await core.deleteNamespace({ name: namespace });
}
