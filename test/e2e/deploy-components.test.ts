/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** Whether every two components of deploy/ go together, as the real API server sees it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PatchStrategy, type KubernetesObject, type V1Deployment } from '@kubernetes/client-node';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { connectAdmin, type Admin } from '../support/admin.ts';
import type { Cluster } from '../support/cluster.ts';
import { startCluster } from '../support/start-cluster.ts';
import { installKinds, prometheusRuleKind, serviceMonitorKind } from '../support/custom-kinds.ts';
import { eventually } from '../support/eventually.ts';
import { findKubectl } from '../support/kubectl.ts';
import { builtObjects, deployFolder, onlyOf, ownInstall } from './kustomization.ts';

const components = (await readdir(join(deployFolder, 'components'))).toSorted();
const pairs = components.flatMap((one, index) => components.slice(index + 1).map((other) => [one, other] as const));

const kubectl = await findKubectl();
const isReal = process.env['E2E_TARGET'] === 'kubernetes' && kubectl !== undefined;

describe('the components in deploy/', { skip: isReal ? false : 'needs the real control plane' }, () => {
  const plain = `e2e-${randomBytes(4).toString('hex')}`;
  const restricted = `${plain}-restricted`;
  const cleanup = new AsyncDisposableStack();
  /** What each component alone makes of the base. */
  const alone = new Map<string, KubernetesObject[]>();
  let cluster: Cluster;
  let admin: Admin;

  before(async () => {
    cluster = await startCluster();
    cleanup.defer(() => cluster.stop());
    admin = connectAdmin(cluster.adminKubeconfig);
    for (const name of [plain, restricted]) {
      const labels = name === restricted ? { 'pod-security.kubernetes.io/enforce': 'restricted' } : {};
      await admin.core.createNamespace({ body: { metadata: { name, labels } } });
      cleanup.defer(async () => {
        await admin.core.deleteNamespace({ name });
      });
      await admin.core.createNamespacedServiceAccount({
        namespace: name,
        body: { metadata: { name: 'csi-provisioner' } },
      });
    }
    cleanup.defer(await installKinds(cluster, admin, [serviceMonitorKind, prometheusRuleKind]));
    for (const name of components) alone.set(name, await objectsWith([name]));
  });
  after(() => cleanup.disposeAsync());

  const objectsWith = async (names: readonly string[]): Promise<KubernetesObject[]> => {
    const namespace = names.includes('restricted') ? restricted : plain;
    await using install = await ownInstall({ namespace, components: names });
    return await builtObjects(kubectl ?? '', install.folder);
  };

  /** A dry run of what `kubectl apply --server-side` sends. */
  const apply = (manifest: KubernetesObject) =>
    admin.objects.patch(manifest, undefined, 'All', 'e2e', true, PatchStrategy.ServerSideApply);

  /** A dry run of the Pod that the Deployment would make: only there security is checked. */
  const createPod = ({ metadata, spec }: V1Deployment) =>
    admin.core.createNamespacedPod({
      namespace: metadata?.namespace ?? '',
      dryRun: 'All',
      body: { metadata: { name: 'csi-provisioner' }, ...(spec?.template.spec && { spec: spec.template.spec }) },
    });

  test('are all there', () => {
    assert.ok(components.length >= 11);
  });

  for (const [one, other] of pairs) {
    test(`${one} and ${other} together are accepted, and neither loses what it has alone`, async () => {
      const objects = await objectsWith([one, other]);
      for (const object of objects) {
        const applied = await apply(object);
        assert.equal(applied.metadata?.name, object.metadata?.name);
      }
      const single = [one, other].map((name) => alone.get(name) ?? []);
      assert.deepEqual(titles(objects), titles(single.flat()));
      assert.deepEqual(settings(objects), new Set(single.flatMap((each) => [...settings(each)])));
      const deployment = onlyOf<V1Deployment>(objects, 'Deployment');
      const args = deployment.spec?.template.spec?.containers[0]?.args ?? [];
      const environment = { NAMESPACE: plain, POD_NAME: 'csi-provisioner' };
      const parsed = parseCommandLine({ argv0: 'csi-provisioner', args, environment, version: 'v0' });
      assert.equal(parsed.kind, 'run');
      if (one === 'driver-as-root' && other === 'restricted') {
        await assert.rejects(createPod(deployment), /violates PodSecurity/);
      } else {
        await eventually(() => createPod(deployment));
      }
    });
  }
});

/** Kinds and names, less the namespace, which ends the names of cluster-wide objects. */
function titles(objects: readonly KubernetesObject[]): Set<string> {
  return new Set(
    objects
      .filter(({ kind }) => kind !== 'Namespace')
      .map(({ kind, metadata }) => `${kind ?? ''} ${metadata?.name?.split(':')[0] ?? ''}`),
  );
}

/** Arguments and environment variables of all containers. */
function settings(objects: readonly KubernetesObject[]): Set<string> {
  const { spec } = onlyOf<V1Deployment>(objects, 'Deployment');
  return new Set(
    spec?.template.spec?.containers.flatMap(({ name, args = [], env = [] }) =>
      [...args, ...env.map((each) => each.name)].map((each) => `${name} ${each}`),
    ),
  );
}
