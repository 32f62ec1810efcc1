import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KubeObject, Resource } from '../../../src/kube/kube-object.ts';
import { GidAllocator, gidRange } from '../../../src/provision/gid-allocator.ts';
import type { PersistentVolume, StorageClass } from '../../../src/provision/objects.ts';

const classNamed = (name: string, parameters: Record<string, string> = {}): StorageClass => ({
  metadata: { name },
  provisioner: 'nfs.example.com',
  parameters,
});
const volume = (name: string, gid: string, spec = { storageClassName: 'shared' }): PersistentVolume => ({
  metadata: { name, annotations: { 'pv.beta.kubernetes.io/gid': gid } },
  spec,
});

/** An API with these volumes, which counts how often they are read. */
class Volumes {
  lists = 0;
  readonly #volumes: PersistentVolume[];

  constructor(volumes: PersistentVolume[]) {
    this.#volumes = volumes;
  }

  select<T extends KubeObject, Kept>(_resource: Resource, pick: (object: T) => Kept | undefined): Promise<Kept[]> {
    this.lists += 1;
    const volumes = this.#volumes as KubeObject[] as T[];
    return Promise.resolve(volumes.map(pick).filter((kept) => kept !== undefined));
  }
}

describe('gidRange', () => {
  test('is 2000 to 2147483647 where the class does not say otherwise', () => {
    assert.deepEqual(gidRange(classNamed('shared')), { min: 2000, max: 2_147_483_647 });
  });

  test('reads the parameters in whatever case', () => {
    assert.deepEqual(gidRange(classNamed('shared', { gidmin: '3000', GIDMAX: '4000' })), { min: 3000, max: 4000 });
  });

  for (const { name, parameters, message } of [
    {
      name: 'a number below the bounds',
      parameters: { gidMin: '1999' },
      message: /gidMin "1999" is not a number from/,
    },
    { name: 'a number above the bounds', parameters: { gidMax: '2147483648' }, message: /gidMax "2147483648"/ },
    { name: 'what is no number', parameters: { gidMin: '0x7d0' }, message: /gidMin "0x7d0"/ },
    { name: 'a range the wrong way round', parameters: { gidMin: '3001', gidMax: '3000' }, message: /3001 is above/ },
  ] as { name: string; parameters: Record<string, string>; message: RegExp }[]) {
    test(`refuses ${name}`, () => {
      assert.throws(() => gidRange(classNamed('shared', parameters)), { message, infeasible: true });
    });
  }
});

describe('GidAllocator', () => {
  test('gives the lowest group id that no volume of the class has', async () => {
    const api = new Volumes([
      volume('pvc-a', '2000'),
      volume('pvc-b', '2002'),
      volume('pvc-c', '2001', { storageClassName: 'another' }),
      volume('pvc-d', 'none'),
    ]);
    const gids = new GidAllocator({ client: api });
    const storageClass = classNamed('shared');
    assert.equal(await gids.allocate({ storageClass, volumeName: 'pvc-1' }), 2001);
    assert.equal(await gids.allocate({ storageClass, volumeName: 'pvc-2' }), 2003);
    assert.equal(api.lists, 1, 'what is taken is read once');
  });

  test('gives a volume the same group id at every attempt', async () => {
    const gids = new GidAllocator({ client: new Volumes([volume('pvc-a', '2007')]) });
    const storageClass = classNamed('shared');
    const first = await gids.allocate({ storageClass, volumeName: 'pvc-1' });
    assert.equal(await gids.allocate({ storageClass, volumeName: 'pvc-1' }), first);
    assert.equal(await gids.allocate({ storageClass, volumeName: 'pvc-a' }), 2007, 'also one that is saved');
  });

  test('gives no group id twice to claims that come at once', async () => {
    const api = new Volumes([]);
    const gids = new GidAllocator({ client: api });
    const names = Array.from({ length: 50 }, (_, index) => `pvc-${index}`);
    const storageClass = classNamed('shared');
    const given = await Promise.all(names.map((volumeName) => gids.allocate({ storageClass, volumeName })));
    assert.equal(new Set(given).size, 50);
    assert.equal(api.lists, 1);
  });

  test('says that none is left, and gives one that was released', async () => {
    const gids = new GidAllocator({ client: new Volumes([]) });
    const storageClass = classNamed('small', { gidMin: '2000', gidMax: '2001' });
    for (const volumeName of ['pvc-1', 'pvc-2']) await gids.allocate({ storageClass, volumeName });
    await assert.rejects(gids.allocate({ storageClass, volumeName: 'pvc-3' }), {
      message: /StorageClass small: all 2 group ids from 2000 to 2001 are taken/,
      state: 'finished',
    });
    gids.release('pvc-1');
    gids.release('pvc-1');
    assert.equal(await gids.allocate({ storageClass, volumeName: 'pvc-3' }), 2000);
  });

  test('keeps a group id that storage has already', async () => {
    const gids = new GidAllocator({ client: new Volumes([]) });
    await gids.keep({ className: 'shared', volumeName: 'pvc-1', gid: 2000 });
    assert.equal(await gids.allocate({ storageClass: classNamed('shared'), volumeName: 'pvc-2' }), 2001);
  });

  test('follows a class that was recreated with another range', async () => {
    const gids = new GidAllocator({ client: new Volumes([]) });
    const allocate = (volumeName: string, gidMin: string) =>
      gids.allocate({ storageClass: classNamed('shared', { gidMin }), volumeName });
    assert.equal(await allocate('pvc-1', '5000'), 5000);
    assert.equal(await allocate('pvc-2', '4999'), 4999);
    assert.equal(await allocate('pvc-3', '4999'), 5001);
  });

  test('reads the volumes again after a list that failed', async () => {
    const api = new Volumes([volume('pvc-a', '2000')]);
    const select = api.select.bind(api);
    api.select = () => Promise.reject(new Error('the server is busy'));
    const gids = new GidAllocator({ client: api });
    const wanted = { storageClass: classNamed('shared'), volumeName: 'pvc-1' };
    await assert.rejects(gids.allocate(wanted), /busy/);
    api.select = select;
    assert.equal(await gids.allocate(wanted), 2001);
  });
});
