/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { appendFile, cp, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  PatchStrategy,
  loadAllYaml,
  loadYaml,
  type KubernetesObject,
  type V1ClusterRole,
  type V1ClusterRoleBinding,
  type V1ConfigMap,
  type V1DaemonSet,
  type V1CSIDriver,
  type V1Deployment,
  type V1Namespace,
  type V1PodDisruptionBudget,
  type V1PolicyRule,
  type V1Role,
  type V1Service,
  type V1StorageClass,
} from '@kubernetes/client-node';
import { connectAdmin } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { eventually } from '../support/eventually.ts';
import { findKubectl } from '../support/kubectl.ts';
import { builtObjects, deployFolder, onlyOf as ofKind, ownInstall } from './kustomization.ts';
import { plainJson } from './plain-json.ts';

const read = (name: string): Promise<string> => readFile(join(deployFolder, name), 'utf8');

const kubectl = await findKubectl();
const needsKubectl = {
  skip: kubectl === undefined ? 'no kubectl in KUBE_BIN_DIR or the kube-bin cache folder' : false,
};

/** All objects of a folder below deploy/. */
const built = (name: string): Promise<KubernetesObject[]> => builtObjects(kubectl ?? '', join(deployFolder, name));

/** All objects of an install with one component, in a namespace of its own. */
async function builtWith(component: string): Promise<KubernetesObject[]> {
  await using install = await ownInstall({ namespace: 'own', components: [component] });
  return await builtObjects(kubectl ?? '', install.folder);
}

/** What rules permit on a resource, in their order. */
const verbsOn = (resource: string, rules: readonly V1PolicyRule[] | undefined): string[] =>
  (rules ?? []).filter(({ resources }) => resources?.includes(resource)).flatMap(({ verbs }) => verbs);

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
      const text = (await read(file)).replaceAll('%NAMESPACE', 'default');
      for (const manifest of loadAllYaml(text) as KubernetesObject[]) await check(manifest);
    }
  });

  for (const name of [
    '.',
    'nfs-server',
    'nfs-subdir',
    'overlays/change-over',
    'overlays/node-deployment',
    'overlays/production',
  ]) {
    test(`${name} is built by kubectl and accepted by the API server`, needsKubectl, async () => {
      const { core } = connectAdmin(cluster.adminKubeconfig);
      const objects = await built(name);
      const own = objects.find(({ kind }) => kind === 'Namespace') as V1Namespace | undefined;
      // A dry run makes nothing, and what is in a namespace needs it.
      if (own !== undefined) await eventually(() => core.createNamespace({ body: own })); // one of before may still be going
      for (const manifest of objects) {
        if (!isUnknown(manifest)) await check(manifest);
      }
      if (own !== undefined) await core.deleteNamespace({ name: own.metadata?.name ?? '' });
    });
  }

  test('are accepted with the options that stand there as comments, too', async () => {
    for (const [file, comment] of [
      ['base/deployment.yaml', /^( {6})# (?=priorityClassName|tolerations| {2})/gm],
      ['overlays/node-deployment/daemonset.yaml', /^( {6})# (?=priorityClassName|tolerations| {2})/gm],
      ['components/network-policy/network-policy.yaml', /^( {2})# (?=egress| {2})/gm],
    ] as const) {
      const text = await read(file);
      const manifest = loadYaml<KubernetesObject>(text.replace(comment, '$1'));
      assert.notDeepEqual(manifest, loadYaml(text), file);
      manifest.metadata!.namespace = 'default';
      if (!isUnknown(manifest)) await check(manifest);
    }
  });

  test('let the sidecar write its journal, and only with leader election watch Leases', needsKubectl, async () => {
    const rulesOf = (objects: readonly KubernetesObject[]) =>
      (objects.filter(({ kind }) => kind?.endsWith('Role')) as V1Role[]).flatMap(({ rules = [] }) => rules);
    assert.deepEqual(verbsOn('leases', rulesOf(await built('.'))), ['get', 'create', 'update']);
    const verbs = verbsOn('leases', rulesOf(await builtWith('leader-election')));
    assert.deepEqual(verbs.toSorted(), ['create', 'get', 'list', 'update', 'watch'], 'each of them once');
  });

  test('let the sidecar read Secrets only with a component, of one namespace or of all', needsKubectl, async () => {
    const rulesOf = (objects: readonly KubernetesObject[], kind: string) =>
      (objects.filter((object) => object.kind === kind) as V1Role[]).flatMap(({ rules = [] }) => rules);
    for (const [component, cluster, own] of [
      ['snapshots', [], []],
      ['secrets', ['get'], []],
      ['secrets-in-own-namespace', [], ['get']],
    ] as const) {
      const objects = await builtWith(component);
      assert.deepEqual(verbsOn('secrets', rulesOf(objects, 'ClusterRole')), cluster, component);
      assert.deepEqual(verbsOn('secrets', rulesOf(objects, 'Role')), own, component);
    }
  });

  for (const { title, build } of [
    {
      title: 'with a token of its own',
      build: async () => ofKind<V1Deployment>(await builtWith('token-of-its-own'), 'Deployment'),
    },
    {
      title: 'with node deployment',
      build: async () => ofKind<V1DaemonSet>(await built('overlays/node-deployment'), 'DaemonSet'),
    },
  ]) {
    test(`${title} give the token to the sidecar alone`, needsKubectl, async () => {
      const pod = (await build()).spec?.template.spec;
      assert.equal(pod?.automountServiceAccountToken, false);
      const tokens = (pod.volumes ?? []).filter(({ projected }) => projected !== undefined).map(({ name }) => name);
      const holders = pod.containers.filter(({ volumeMounts = [] }) =>
        volumeMounts.some(({ name }) => tokens.includes(name)),
      );
      assert.deepEqual(holders.map(({ name }) => name), ['csi-provisioner']); // prettier-ignore
      const mount = holders[0]?.volumeMounts?.find(({ name }) => tokens.includes(name));
      assert.equal(mount?.mountPath, '/var/run/secrets/kubernetes.io/serviceaccount', 'where the sidecar reads it');
    });
  }

  test('with leader election run two replicas, and a drain leaves one', needsKubectl, async () => {
    const objects = await builtWith('leader-election');
    const deployment = ofKind<V1Deployment>(objects, 'Deployment');
    assert.equal(deployment.spec?.replicas, 2);
    assert.equal(deployment.spec.strategy?.type, 'RollingUpdate');
    const sidecar = deployment.spec.template.spec?.containers.find(({ name }) => name === 'csi-provisioner');
    assert.ok(sidecar?.args?.includes('--leader-election') === true);
    for (const probe of [sidecar.startupProbe, sidecar.livenessProbe]) {
      assert.equal(probe?.httpGet?.path, '/healthz/leader-election');
    }
    const { spec } = ofKind<V1PodDisruptionBudget>(objects, 'PodDisruptionBudget');
    assert.equal(spec?.minAvailable, 1);
    assert.deepEqual(spec.selector?.matchLabels, labelsOf(deployment));
  });

  test('with capacity name flags, environment and rights that belong together', needsKubectl, async () => {
    const objects = await builtWith('capacity');
    const { spec } = ofKind<V1Deployment>(objects, 'Deployment');
    const [sidecar] = spec?.template.spec?.containers ?? [];
    assert.deepEqual(sidecar?.args?.slice(-2), ['--enable-capacity', '--capacity-ownerref-level=2']);
    const fields = sidecar.env?.map(({ name, valueFrom }) => [name, valueFrom?.fieldRef?.fieldPath]);
    assert.deepEqual(Object.fromEntries(fields ?? []), {
      NAMESPACE: 'metadata.namespace',
      POD_NAME: 'metadata.name',
    });
    assert.equal(ofKind<V1CSIDriver>(objects, 'CSIDriver').spec.storageCapacity, true);
  });

  test('with monitoring lead from the ServiceMonitor to the port of the sidecar', needsKubectl, async () => {
    const objects = await builtWith('monitoring');
    const deployment = ofKind<V1Deployment>(objects, 'Deployment');
    const service = ofKind<V1Service>(objects, 'Service');
    const monitor = ofKind<KubernetesObject & { spec: { selector: object; endpoints: { port: string }[] } }>(
      objects,
      'ServiceMonitor',
    );
    const dashboard = ofKind<V1ConfigMap>(objects, 'ConfigMap');
    assert.equal(dashboard.metadata?.labels?.['grafana_dashboard'], '1');
    assert.equal(dashboard.data?.['csi-provisioner.json'], await read('components/monitoring/dashboard.json'));
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
      const objects = await builtWith('topology');
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

  test('with node deployment run on every node, which they name, and watch no nodes', needsKubectl, async () => {
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
    for (const unused of ['csinodes', 'leases', 'secrets']) assert.ok(!resources.includes(unused), unused);
    assert.deepEqual(verbsOn('nodes', rules), ['get']);
    assert.deepEqual(verbsOn('leases', ofKind<V1Role>(objects, 'Role').rules), ['get', 'list', 'create', 'update']);
    const { subjects } = ofKind<V1ClusterRoleBinding>(objects, 'ClusterRoleBinding');
    assert.equal(subjects?.[0]?.name, pod?.serviceAccountName);
    const driver = pod?.containers.find(({ name }) => name === 'hostpath-driver')?.args;
    const provisioners = [
      ofKind<V1StorageClass>(objects, 'StorageClass').provisioner,
      ofKind(objects, 'CSIDriver').metadata?.name,
    ];
    for (const name of provisioners) assert.ok(driver?.includes(`--driver-name=${name ?? ''}`));
  });

  test('with node deployment let the sidecar read Secrets only with a component', needsKubectl, async (t) => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'node-deployment-')));
    t.after(() => rm(folder, { recursive: true }));
    await cp(join(deployFolder, 'overlays/node-deployment'), folder, { recursive: true });
    await appendFile(join(folder, 'kustomization.yaml'), 'components:\n  - secrets\n');
    const objects = await builtObjects(kubectl ?? '', folder);
    const roles = objects.filter(({ kind }) => kind === 'ClusterRole') as V1ClusterRole[];
    assert.deepEqual(
      roles.map(({ metadata, rules }) => [metadata?.name, verbsOn('secrets', rules)]),
      [
        ['csi-provisioner-node-secrets:csi-provisioner-node', ['get']],
        ['csi-provisioner-node:csi-provisioner-node', []],
      ],
    );
    const bindings = objects.filter(({ kind }) => kind === 'ClusterRoleBinding') as V1ClusterRoleBinding[];
    for (const { metadata, roleRef, subjects } of bindings) {
      assert.equal(roleRef.name, metadata?.name);
      assert.equal(subjects?.[0]?.namespace, 'csi-provisioner-node');
    }
    assert.equal(bindings.length, 2);
  });

  test('describe a Pod that the strictest Pod Security Standard admits', async () => {
    const { spec } = loadYaml<V1Deployment>(await read('base/deployment.yaml'));
    await checkPod(cluster, spec, {
      name: 'e2e-restricted',
      labels: { 'pod-security.kubernetes.io/enforce': 'restricted' },
    });
  });

  test('set the user, which the image leaves to them', async () => {
    for (const file of ['base/deployment.yaml', 'overlays/node-deployment/daemonset.yaml']) {
      const { spec } = loadYaml<V1Deployment | V1DaemonSet>(await read(file));
      const { runAsUser, runAsGroup, runAsNonRoot } = spec?.template.spec?.securityContext ?? {};
      assert.deepEqual(
        { runAsUser, runAsGroup, runAsNonRoot },
        { runAsUser: 65532, runAsGroup: 65532, runAsNonRoot: true },
      );
    }
  });

  test('for a driver that runs as root take nothing of root but its number', needsKubectl, async () => {
    const pod = ofKind<V1Deployment>(await builtWith('driver-as-root'), 'Deployment').spec?.template.spec;
    assert.equal(pod?.securityContext?.runAsUser, 0);
    assert.equal(pod.securityContext.runAsNonRoot, false);
    const sidecar = pod.containers.find(({ name }) => name === 'csi-provisioner')?.securityContext;
    assert.deepEqual(plainJson(sidecar ?? {}), {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    });
  });

  test('have Kubernetes show the last lines of a sidecar that ended with an error', async () => {
    for (const file of ['base/deployment.yaml', 'overlays/node-deployment/daemonset.yaml']) {
      const { spec } = loadYaml<V1Deployment | V1DaemonSet>(await read(file));
      const sidecar = spec?.template.spec?.containers.find(({ name }) => name === 'csi-provisioner');
      assert.equal(sidecar?.terminationMessagePolicy, 'FallbackToLogsOnError', file);
    }
  });

  test('with restricted Pod security hold their own Pod to it', needsKubectl, async () => {
    const objects = await builtWith('restricted');
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
  await eventually(() => create({}));
  if (cluster.name === 'kubernetes') await assert.rejects(create({ hostPID: true }), /violates PodSecurity/);
  await core.deleteNamespace({ name: namespace });
}
