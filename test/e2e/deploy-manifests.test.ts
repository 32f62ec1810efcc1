/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  PatchStrategy,
  loadAllYaml,
  loadYaml,
  type KubernetesObject,
  type V1Deployment,
} from '@kubernetes/client-node';
import { connectAdmin } from './admin.ts';
import { startCluster, type Cluster } from './cluster.ts';
import { eventually } from './eventually.ts';

const folder = join(import.meta.dirname, '../../deploy');
const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');

describe('the manifests in deploy/', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());

  test('are accepted by the API server, field by field', async () => {
    const { objects } = connectAdmin(cluster.adminKubeconfig);
    const { resources } = loadYaml<{ resources: string[] }>(await read('kustomization.yaml'));
    assert.ok(resources.length > 0);
    for (const file of [...resources, 'example.yaml']) {
      for (const manifest of loadAllYaml(await read(file)) as KubernetesObject[]) {
        // Server-side apply refuses fields that it does not know.
        const applied = await objects.patch(manifest, undefined, 'All', 'e2e', true, PatchStrategy.ServerSideApply);
        assert.equal(applied.metadata?.name, manifest.metadata?.name, file);
      }
    }
  });

  test('describe a Pod that the strictest Pod Security Standard admits', async () => {
    const { core } = connectAdmin(cluster.adminKubeconfig);
    const namespace = 'e2e-restricted';
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await core.createNamespace({ body: { metadata: { name: namespace, labels } } });
    await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'csi-provisioner' } } });
    const { spec } = loadYaml<V1Deployment>(await read('deployment.yaml'));
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
  });
});
