import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { eventually } from '../../support/eventually.ts';

const core = (plural: string) => ({ group: '', version: 'v1', plural });

test('a bound claim that grows gets the event of a cluster whose driver has no resizer, once for each size', async () => {
  await using sandbox = await Sandbox.start({ nodes: 0 });
  const client = sandbox.api.client('test');
  client.create(
    { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' },
    { metadata: { name: 'grow' }, provisioner: 'x.example.com', allowVolumeExpansion: true },
  );
  client.create(core('persistentvolumes'), {
    metadata: { name: 'v' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'grow',
      csi: { driver: 'x.example.com', volumeHandle: 'v' },
    },
  });
  const metadata = { name: 'a', namespace: 'default' };
  client.create(core('persistentvolumeclaims'), {
    metadata,
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'grow',
      volumeName: 'v',
      resources: { requests: { storage: '1Gi' } },
    },
  });
  const claim = () => client.get(core('persistentvolumeclaims'), metadata);
  await eventually(() => assert.equal((claim()?.['status'] as { phase: string }).phase, 'Bound'));
  const expanding = () =>
    client
      .list(core('events'))
      .filter(({ reason }) => reason === 'ExternalExpanding')
      .map(({ type, message, source, count }) => ({ type, message, source, count }));
  assert.deepEqual(expanding(), []);
  for (const [storage, count] of [
    ['2Gi', 1],
    ['3Gi', 2],
  ] as const) {
    const current = claim();
    assert.ok(current);
    client.update(core('persistentvolumeclaims'), {
      ...current,
      spec: { ...(current['spec'] as object), resources: { requests: { storage } } },
    });
    await eventually(() =>
      assert.deepEqual(expanding(), [
        {
          type: 'Normal',
          message: 'waiting for an external controller to expand this PVC',
          source: { component: 'volume_expand' },
          count,
        },
      ]),
    );
    const again = claim();
    assert.ok(again);
    client.update(core('persistentvolumeclaims'), {
      ...again,
      metadata: { ...again.metadata, labels: { looked: storage } },
    });
  }
});
