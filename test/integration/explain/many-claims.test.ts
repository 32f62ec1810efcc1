import assert from 'node:assert/strict';
import { test } from 'node:test';
import { driverName } from '../../support/api-scene.ts';
import { ExplainRig } from './rig.ts';

const count = 10_000;

test('among 10,000 claims with their events why needs fewer than 15 requests, and lists no claims', async (t) => {
  await using rig = await ExplainRig.start();
  rig.addClass({ volumeBindingMode: 'WaitForFirstConsumer' });
  rig.addProvisioner();
  for (let index = 0; index < count; index++) {
    const other = rig.addClaim({}, { name: `c-${index}` });
    rig.addEvent(other, 'Provisioning', 'External provisioner is provisioning');
  }
  const handedOver = { 'volume.kubernetes.io/storage-provisioner': driverName };
  rig.add('nodes', { metadata: { name: 'n1' } });
  const claim = rig.addClaim(
    {
      dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'src', namespace: 'ns2' },
      volumeAttributesClassName: 'gold',
    },
    { annotations: { ...handedOver, 'volume.kubernetes.io/selected-node': 'n1' } },
  );
  rig.add('attributesClasses', { metadata: { name: 'gold' }, driverName, parameters: { a: 'b' } });
  rig.add('grants', {
    metadata: { name: 'g', namespace: 'ns2' },
    spec: {
      from: [{ group: '', kind: 'PersistentVolumeClaim', namespace: 'ns1' }],
      to: [{ group: '', kind: 'PersistentVolumeClaim' }],
    },
  });
  rig.add('claims', {
    metadata: { name: 'src', namespace: 'ns2' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'sc' },
    status: { phase: 'Bound' },
  });
  rig.addEvent(claim, 'ProvisioningFailed', 'rpc error: code = Internal desc = on fire');

  const startedMs = performance.now();
  const { cause } = await rig.explain();
  t.diagnostic(`${Math.round(performance.now() - startedMs)} ms, ${rig.requests.length} requests`);
  assert.equal(cause, 'driver-error');
  assert.ok(rig.requests.length < 15, rig.requests.join(', '));
  assert.ok(!rig.requests.includes('list persistentvolumeclaims'));
  assert.ok(!rig.requests.includes('list persistentvolumes'));
});

test('among 4,100 Pods that wait in its namespace why finds the one that uses the claim, page by page', async () => {
  await using rig = await ExplainRig.start();
  rig.addClass({ volumeBindingMode: 'WaitForFirstConsumer' });
  rig.addClaim({}, { annotations: {} });
  for (let index = 0; index < 4100; index++) rig.addPod(`a-${index}`, { spec: { volumes: [] } });
  rig.addPod('z', { spec: { schedulingGates: [{ name: 'example.com/gate' }] } });
  const { cause, message } = await rig.explain();
  assert.equal(cause, 'pod-unschedulable');
  assert.match(message, /Pod z uses the claim and is held by scheduling gates: example\.com\/gate/);
  assert.equal(rig.requests.filter((request) => request === 'list pods').length, 3);
});
