import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import type { SandboxClient } from '../../../sandbox/api/client.ts';
import { findVolume } from '../../../sandbox/control-plane/find-volume.ts';
import { Mirror } from '../../../sandbox/control-plane/mirror.ts';
import { resources, type Claim, type Volume } from '../../../sandbox/control-plane/objects.ts';
import { VolumeIndex } from '../../../sandbox/control-plane/volume-index.ts';

interface Bench extends AsyncDisposable {
  client: SandboxClient;
  index: VolumeIndex;
  add(name: string, size: string, spec?: object, labels?: Record<string, string>): Volume;
  names(): string[];
}

/** Volumes in a real store, set Available by hand, and the index that follows them. */
function createBench(): Bench {
  const server = new ApiServer();
  const client = server.client('test');
  const mirror = new Mirror(client, resources.volumes);
  const index = new VolumeIndex(mirror);
  mirror.start();
  return {
    client,
    index,
    add(name, size, spec = {}, labels = {}) {
      const volume = client.create(resources.volumes, {
        metadata: { name, labels },
        spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: size }, nfs: { server: 's', path: '/' }, ...spec },
      });
      return client.updateStatus(resources.volumes, { ...volume, status: { phase: 'Available' } }) as Volume;
    },
    names: () =>
      index.shelves('', 'Filesystem').flatMap(({ volumes }) => volumes.map(({ volume }) => volume.metadata.name)),
    async [Symbol.asyncDispose]() {
      mirror[Symbol.dispose]();
      await server.close();
    },
  };
}

const claim = (size: string, spec: object = {}): Claim => ({
  metadata: { name: 'c', namespace: 'default', uid: 'u' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, ...spec },
});

describe('VolumeIndex', () => {
  test('keeps available volumes by size and follows every change', async () => {
    await using bench = createBench();
    bench.add('c', '3Gi');
    bench.add('a', '1Gi');
    bench.add('b2', '2048Mi');
    bench.add('b1', '2Gi');
    const block = bench.add('block', '1Gi', { volumeMode: 'Block' });
    await turn();
    assert.deepEqual(bench.names(), ['a', 'b1', 'b2', 'c']);

    const taken = bench.client.get(resources.volumes, { name: 'b1' }) as Volume;
    const claimRef = { namespace: 'default', name: 'c' };
    bench.client.update(resources.volumes, { ...taken, spec: { ...taken.spec, claimRef } });
    bench.client.delete(resources.volumes, { name: 'a' });
    await turn();
    assert.deepEqual(bench.names(), ['b2', 'c']);
    assert.deepEqual([...bench.index.namesForClaim('default/c')], ['b1']);
    assert.deepEqual(
      bench.index.shelves('', 'Block').map(({ volumes }) => volumes.map(({ volume }) => volume.metadata.name)),
      [[block.metadata.name]],
    );
  });
});

describe('findVolume', () => {
  test('takes the smallest one that is large enough, of the fewest access modes', async () => {
    await using bench = createBench();
    const { client, index } = bench;
    const find = (wanted: Claim): string | undefined =>
      findVolume(wanted, { client, index, onlyReserved: false })?.metadata.name;
    bench.add('small-many', '2Gi', { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] });
    bench.add('large-one', '10Gi');
    bench.add('gold', '5Gi', { storageClassName: 'gold' }, { tier: 'gold' });
    await turn();
    assert.equal(find(claim('1Gi')), 'large-one');
    assert.equal(find(claim('1Gi', { accessModes: ['ReadWriteMany'] })), 'small-many');
    assert.equal(find(claim('11Gi')), undefined);
    assert.equal(find(claim('1Gi', { volumeMode: 'Block' })), undefined);
    assert.equal(find(claim('1Gi', { selector: { matchLabels: { tier: 'gold' } } })), undefined);
    const gold = { storageClassName: 'gold', selector: { matchLabels: { tier: 'gold' } } };
    assert.equal(find(claim('1Gi', gold)), 'gold');
    assert.equal(find(claim('1Gi', { storageClassName: 'gold', volumeAttributesClassName: 'quick' })), undefined);
  });

  test('does not hand out a volume that was taken since the index heard of it', async () => {
    await using bench = createBench();
    const { client, index } = bench;
    const first = bench.add('first', '1Gi');
    bench.add('second', '2Gi');
    await turn();
    const claimRef = { namespace: 'default', name: 'other', uid: 'x' };
    client.update(resources.volumes, { ...first, spec: { ...first.spec, claimRef } });
    assert.equal(findVolume(claim('1Gi'), { client, index, onlyReserved: false })?.metadata.name, 'second');
  });

  test('a volume that refers to the claim wins, and is all that counts for delayed classes', async () => {
    await using bench = createBench();
    const { client, index } = bench;
    bench.add('free', '1Gi');
    bench.add('reserved', '9Gi', { claimRef: { namespace: 'default', name: 'c' } });
    bench.add('foreign', '1Gi', { claimRef: { namespace: 'default', name: 'c', uid: 'another' } });
    await turn();
    assert.equal(findVolume(claim('1Gi'), { client, index, onlyReserved: false })?.metadata.name, 'reserved');
    assert.equal(findVolume(claim('1Gi'), { client, index, onlyReserved: true })?.metadata.name, 'reserved');
    assert.equal(findVolume(claim('10Gi'), { client, index, onlyReserved: true }), undefined);
    const quick = claim('1Gi', { volumeAttributesClassName: 'quick' });
    assert.equal(findVolume(quick, { client, index, onlyReserved: true }), undefined);
  });
});
