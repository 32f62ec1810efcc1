import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Informer } from '../../../../src/kube/cache/informer.ts';
import { provisionInformers } from '../../../../src/provision/cache/informers.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { ProvisionController } from '../../../../src/provision/provision-controller.ts';
import { eventually } from '../../../support/eventually.ts';
import { Rig } from '../rig.ts';

const provisionedBy = 'pv.kubernetes.io/provisioned-by';
const nfs = { server: 'files.example', path: '/exports/v' };
const annotations = { [provisionedBy]: 'drv', 'example.com/export': '7', other: 'x' };
const volumeFields = { spec: ['nfs'], annotations: ['example.com/export'] } as const;

describe('fields of bound objects that a program asks for', () => {
  test('are in the caches that it makes, and a change of one reaches its handlers', async () => {
    await using rig = await Rig.prepare();
    rig.addVolume('v', 'Bound', { spec: { nfs }, annotations });
    rig.addClaim('a', { spec: { volumeName: 'v' }, annotations: { a: '1', b: '2' } });
    const informers = provisionInformers({
      transport: rig.transport,
      isKnownProvisioner: (name) => name === 'drv',
      volumeFields,
      claimFields: { annotations: ['a'] },
    });
    const end = new AbortController();
    const seen: (string | undefined)[] = [];
    informers.volumes.addHandler({
      onUpdate: (_old, { metadata }) => seen.push(metadata.annotations?.['example.com/export']),
    });
    const running = Object.values(informers).map((informer: Informer<never>) => informer.run(end.signal));
    try {
      await eventually(() => assert.ok(informers.volumes.hasSynced && informers.claims.hasSynced));
      assert.deepEqual(informers.volumes.get('v')?.spec.nfs, nfs);
      assert.deepEqual(informers.claims.get('ns/a')?.metadata.annotations, { a: '1' });
      for (const change of [{ other: 'y' }, { 'example.com/export': '8' }]) rig.annotateVolume('v', change);
      await eventually(() => assert.deepEqual(seen, ['8']));
      assert.equal(informers.volumes.get('v')?.metadata.annotations?.['other'], undefined);
    } finally {
      end.abort();
      await Promise.all(running);
    }
  });

  test('are on the volumes that the controller passes to shouldDelete', async () => {
    const asked: PersistentVolume[] = [];
    const shouldDelete = (volume: PersistentVolume): boolean => asked.push(volume) > 0;
    await using rig = await Rig.prepare({
      controller: { volumeFields, addFinalizer: true },
      methods: { shouldDelete },
    });
    rig.addVolume('v', 'Bound', { spec: { nfs }, annotations }); // without the finalizer, which brings it to the queue
    await rig.start();
    await eventually(() => assert.ok(asked.length > 0));
    const { spec, metadata } = asked[0] ?? assert.fail();
    assert.deepEqual(spec.nfs, nfs);
    assert.deepEqual(metadata.annotations, { [provisionedBy]: 'drv', 'example.com/export': '7' });
  });

  test('are refused by a controller whose caches others made', async () => {
    await using rig = await Rig.prepare();
    const { transport, provisioner } = rig;
    const informers = provisionInformers({ transport, isKnownProvisioner: () => true });
    assert.throws(
      () => new ProvisionController({ provisionerName: 'drv', provisioner, transport, informers, volumeFields }),
      /^TypeError: volumeFields has no effect on informers that exist already: pass it to provisionInformers$/,
    );
  });
});
