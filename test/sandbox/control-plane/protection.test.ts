import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimProtectionFinalizer, volumeProtectionFinalizer } from '../../../sandbox/control-plane/annotations.ts';
import { updateObject } from '../../../sandbox/control-plane/object-access.ts';
import { resources } from '../../../sandbox/control-plane/objects.ts';
import { Cluster } from './cluster.ts';
import { ProvisionerDouble } from './provisioner-double.ts';

describe('claim protection', () => {
  test('a claim in use by a scheduled pod stays until the pod is gone', async () => {
    await using cluster = new Cluster({ parts: { kubeletStub: false } });
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('c', 'fast');
    cluster.addPod('p', ['c']);
    await cluster.podOnNode('p');
    cluster.deleteClaim('c');
    cluster.addClaim('unused', 'late');
    cluster.deleteClaim('unused');
    await cluster.until('the unused claim to go', () => cluster.claim('unused') === undefined);
    assert.notEqual(cluster.claim('c')?.metadata.deletionTimestamp, undefined);
    cluster.client.delete(resources.pods, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 });
    await cluster.until('the claim to go', () => cluster.claim('c') === undefined);
  });

  test('a claim goes with its last pod, without waiting for a resync', async () => {
    await using cluster = new Cluster({ parts: { kubeletStub: false }, resyncMs: 3_600_000 });
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('c', 'fast');
    cluster.addPod('p', ['c']);
    await cluster.podOnNode('p');
    cluster.deleteClaim('c');
    cluster.client.delete(resources.pods, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 });
    await cluster.until('the claim to go', () => cluster.claim('c') === undefined);
  });

  test('a finished pod counts until its object is deleted', async () => {
    await using cluster = new Cluster({ parts: { kubeletStub: false } });
    using _ = new ProvisionerDouble(cluster.client);
    cluster.addClaim('c', 'fast');
    cluster.addPod('p', ['c']);
    await cluster.podOnNode('p');
    const pod = cluster.pod('p');
    assert.ok(pod !== undefined);
    cluster.client.updateStatus(resources.pods, { ...pod, status: { phase: 'Succeeded' } });
    cluster.deleteClaim('c');
    cluster.addClaim('unused', 'late');
    cluster.deleteClaim('unused');
    await cluster.until('the unused claim to go', () => cluster.claim('unused') === undefined);
    assert.notEqual(cluster.claim('c'), undefined);
    cluster.deletePod('p');
    await cluster.until('the claim to go', () => cluster.claim('c') === undefined);
  });

  test('a claim used by unscheduled pods only goes at once', async () => {
    await using cluster = new Cluster();
    cluster.addClaim('c', 'late');
    cluster.addPod('p', ['c'], { nodeSelector: { nowhere: 'true' } });
    await cluster.until('a failed attempt', () => cluster.events('p').length > 0);
    cluster.deleteClaim('c');
    await cluster.until('the claim to go', () => cluster.claim('c') === undefined);
    assert.equal(cluster.pod('p')?.spec.nodeName, undefined);
  });

  test('a claim of an ephemeral volume counts for the pod that owns it', async () => {
    await using cluster = new Cluster({ parts: { scheduler: false, kubeletStub: false } });
    const pod = cluster.addPod('p', [], { nodeName: 'n1', volumes: [{ name: 'scratch', ephemeral: {} }] });
    cluster.client.create(resources.claims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: 'p-scratch',
        namespace: 'default',
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: pod.metadata.uid ?? '', controller: true }],
      },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'late', resources: { requests: { storage: '1Gi' } } },
    });
    cluster.deleteClaim('p-scratch');
    cluster.addClaim('unused', 'late');
    cluster.deleteClaim('unused');
    await cluster.until('the unused claim to go', () => cluster.claim('unused') === undefined);
    assert.notEqual(cluster.claim('p-scratch'), undefined);
    cluster.client.delete(resources.pods, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 });
    await cluster.until('the claim to go', () => cluster.claim('p-scratch') === undefined);
  });

  test('a finalizer that was taken off a live claim or volume is put back', async () => {
    await using cluster = new Cluster();
    updateObject(cluster.client, resources.claims, cluster.addClaim('c', 'late'), ({ metadata }) => {
      metadata.finalizers = [];
    });
    updateObject(cluster.client, resources.volumes, cluster.addVolume('v', '1Gi'), ({ metadata }) => {
      metadata.finalizers = [];
    });
    await cluster.until('the finalizer of the claim', () =>
      cluster.claim('c')?.metadata.finalizers?.includes(claimProtectionFinalizer),
    );
    await cluster.until('the finalizer of the volume', () =>
      cluster.volume('v')?.metadata.finalizers?.includes(volumeProtectionFinalizer),
    );
  });
});
