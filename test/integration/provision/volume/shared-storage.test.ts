/** Storage of a released volume that another PersistentVolume has, too. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { storageHash } from '../../../../src/provision/cache/cached-volume.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { annotation, F, pvProtection, resource, Rig, type RigOptions, type VolumeSketch } from '../rig.ts';

/** As a driver that replaced an in-tree plugin, and of whose handles the letter case does not count. */
function storageKeys({ spec }: PersistentVolume): string[] {
  const disk = spec['azureDisk'] as { diskURI: string } | undefined;
  const handle = spec.csi?.driver === 'drv' ? spec.csi.volumeHandle : disk?.diskURI;
  return handle === undefined ? [] : [handle.toLowerCase()];
}

function prepare({ methods, ...options }: RigOptions = {}): Promise<Rig> {
  return Rig.prepare({ ...options, methods: { storageKeys, ...methods } });
}

const handle = (volumeHandle: string, more: Record<string, unknown> = {}): VolumeSketch => ({
  spec: { csi: { driver: 'drv', volumeHandle }, ...more },
});
const same = handle('the-storage');

/** Volumes whose storage was deleted, in this order. */
function deleted(rig: Rig): string[] {
  return rig.provisioner.deletions.map(({ metadata }) => metadata.name);
}

function changePolicy(rig: Rig, name: string, persistentVolumeReclaimPolicy: string): void {
  const volume = structuredClone(rig.api.get(resource.volumes, { name }))!;
  Object.assign(volume['spec'] as object, { persistentVolumeReclaimPolicy });
  rig.api.update(resource.volumes, volume);
}

/** Released volumes of the same storage by their UIDs, the one with the lowest first. */
function addReleased(rig: Rig, count: number, sketch = same): string[] {
  const volumes = Array.from({ length: count }, (_, number) => rig.addVolume(`v${number}`, 'Released', sketch));
  return volumes.sort((a, b) => (a.metadata.uid! < b.metadata.uid! ? -1 : 1)).map(({ metadata }) => metadata.name);
}

const keptEvent = (name: string, other: string) => ({
  type: 'Warning',
  reason: 'VolumeDeletionWaiting',
  message: `persistentvolume ${name} has the same storage as persistentvolume ${other}, which is not to be deleted`,
  count: 1,
  object: name,
});

/** Live reads of single volumes. */
function reads(rig: Rig): string[] {
  return rig.wire.requests
    .filter(({ path }) => path.includes('fieldSelector=metadata.name'))
    .map(({ path }) => new URLSearchParams(path.split('?')[1]).get('fieldSelector')!.slice('metadata.name='.length));
}

describe('the storage of a released volume is kept while another volume has it', () => {
  const others: { title: string; phase?: string; sketch?: VolumeSketch; own?: VolumeSketch }[] = [
    { title: 'that was imported under another name and is bound', sketch: { ...same, annotations: {} } },
    { title: 'that waits for a claim', phase: 'Available', sketch: { ...same, annotations: {} } },
    { title: 'that this provisioner made' },
    {
      title: 'of another provisioner with our driver',
      sketch: { ...same, annotations: { [annotation.provisionedBy]: 'another' } },
    },
    {
      title: 'of another provisioner with our driver, although it is released, too',
      phase: 'Released',
      sketch: { ...same, annotations: { [annotation.provisionedBy]: 'another' } },
    },
    { title: 'that names the storage in capitals', sketch: handle('THE-STORAGE') },
    {
      title: 'of the in-tree plugin that the driver replaced',
      sketch: {
        annotations: {},
        spec: { azureDisk: { diskName: 'd', diskURI: '/subscriptions/S/D', kind: 'Managed' } },
      },
      own: handle('/subscriptions/s/d'),
    },
    {
      title: 'that is released and to be kept',
      phase: 'Released',
      sketch: handle('the-storage', { persistentVolumeReclaimPolicy: 'Retain' }),
    },
    { title: 'whose deletion failed for good', phase: 'Failed' },
    {
      title: 'that is being deleted and is held by another finalizer',
      phase: 'Released',
      sketch: { ...same, finalizers: [pvProtection], terminating: true },
    },
  ];
  for (const { title, phase = 'Bound', sketch = same, own = same } of others) {
    test(title, async () => {
      await using rig = await prepare();
      rig.addVolume('other', phase, sketch);
      rig.addVolume('v', 'Released', own);
      await rig.start();
      assert.deepEqual(deleted(rig), []);
      assert.deepEqual(rig.writes, []);
      rig.touchVolume('v');
      rig.touchVolume('other');
      await rig.settle();
      rig.setFinalizers('other', []);
      if (rig.volume('other') !== undefined) rig.api.delete(resource.volumes, { name: 'other' });
      await rig.until('its end', () => rig.volume('v') === undefined);
      await rig.stop();
      assert.deepEqual(deleted(rig), ['v']);
      assert.deepEqual(rig.events, [keptEvent('v', 'other')]);
      const syncs = rig.limiter.syncs('v').map(({ end }) => end);
      assert.deepEqual([...new Set(syncs)], ['done'], 'it was never a failure');
      assert.deepEqual(rig.metrics.totals, { dt: 1 });
    });
  }

  test('with a finalizer of ours, which stays as long', async () => {
    await using rig = await prepare({ controller: { addFinalizer: true } });
    rig.addVolume('other', 'Bound', { ...same, annotations: {}, finalizers: [F] });
    rig.addVolume('v', 'Released', { ...same, finalizers: [F] });
    await rig.start();
    assert.deepEqual(rig.writes, []);
    assert.deepEqual(rig.volume('v')?.metadata.finalizers, [F]);
  });

  test('is not deleted any more once it is to be kept', async () => {
    await using rig = await prepare();
    rig.addVolume('other', 'Bound', same);
    rig.addVolume('v', 'Released', same);
    await rig.start();
    changePolicy(rig, 'v', 'Retain');
    await rig.settle();
    rig.api.delete(resource.volumes, { name: 'other' });
    await rig.settle();
    assert.deepEqual(deleted(rig), []);
    assert.ok(rig.volume('v'));
  });

  test('that was imported after a deletion failed', async () => {
    await using rig = await prepare();
    rig.addVolume('v', 'Released', same);
    rig.provisioner.deleteSteps.push(new Error('busy'));
    await rig.start();
    assert.deepEqual(deleted(rig), ['v']);
    rig.addVolume('other', 'Bound', { ...same, annotations: {} });
    await rig.settle();
    rig.controller.wakeVolume('v');
    await rig.synced('v', 2);
    assert.deepEqual(deleted(rig), ['v']);
    await rig.stop();
    assert.deepEqual(rig.reasons, ['VolumeFailedDelete', 'VolumeDeletionWaiting']);
  });

  test('waits for the next such volume once the first is gone, with an event of its own', async () => {
    await using rig = await prepare();
    rig.addVolume('other1', 'Bound', same);
    rig.addVolume('v', 'Released', same);
    await rig.start();
    rig.addVolume('other2', 'Bound', same);
    await rig.settle();
    rig.setFinalizers('other1', [pvProtection]); // a change, after which it comes last in the index
    await rig.settle();
    assert.deepEqual(rig.events, [keptEvent('v', 'other1')]);
    rig.setFinalizers('other1', []);
    rig.api.delete(resource.volumes, { name: 'other1' });
    await rig.until('the second event', () => rig.events.length === 2);
    assert.deepEqual(rig.events, [keptEvent('v', 'other1'), keptEvent('v', 'other2')]);
    assert.deepEqual(deleted(rig), []);
    rig.api.delete(resource.volumes, { name: 'other2' });
    await rig.until('its end', () => rig.volume('v') === undefined);
  });

  test('has its event repeated before the API server forgets it', async () => {
    const clock = new ManualClock();
    await using rig = await prepare({ clock });
    rig.addVolume('other', 'Bound', same);
    rig.addVolume('v', 'Released', same);
    await rig.start();
    await rig.until('the event', () => rig.events.length > 0);
    for (const { minutes, count } of [
      { minutes: 29, count: 1 },
      { minutes: 1, count: 2 },
      { minutes: 29, count: 2 },
    ]) {
      await clock.advance(minutes * 60_000);
      rig.touchVolume('v');
      await rig.settle();
      await rig.until(`${count} times`, () => rig.events[0]?.count === count);
    }
    await rig.stop();
    assert.deepEqual(rig.events, [{ ...keptEvent('v', 'other'), count: 2 }]);
  });

  test('while nobody can say whether it has', async () => {
    await using rig = await prepare();
    rig.addVolume('other', 'Bound', same);
    rig.addVolume('v', 'Bound', same);
    await rig.start();
    const unread = rig.refuse('list', 'persistentvolumes');
    rig.releaseVolume('v');
    await rig.synced('v');
    assert.deepEqual(deleted(rig), []);
    assert.equal(rig.limiter.syncs('v').at(-1)?.end, 'retry');
    unread.remove();
    rig.api.delete(resource.volumes, { name: 'other' });
    await rig.until('its end', () => rig.volume('v') === undefined);
  });
});

describe('of volumes of the same storage that are all to be deleted', () => {
  test('the one with the lowest UID goes first, and the others follow once it is gone', async () => {
    await using rig = await prepare();
    const [first, second, third] = addReleased(rig, 3);
    const gate = Promise.withResolvers<undefined>();
    rig.provisioner.deleteSteps.push(() => gate.promise);
    rig.startOnly();
    await rig.until('the first deletion', () => deleted(rig).length === 1);
    rig.controller.wakeVolume(second!);
    rig.controller.wakeVolume(third!);
    gate.resolve(undefined);
    await rig.until('the end of all', () => rig.volumes.length === 0);
    await rig.stop();
    assert.deepEqual(deleted(rig), [first, second, third]);
    for (const { type, message } of rig.events) {
      assert.equal(type, 'Normal');
      assert.match(
        message,
        /^persistentvolume v\d has the same storage as persistentvolume v\d, which is deleted first$/,
      );
    }
  });

  test('with several workers no two of them are deleted at once', async () => {
    await using rig = await prepare({ controller: { workers: 4 } });
    const order = addReleased(rig, 4);
    let underWay = 0;
    rig.provisioner.otherwiseDelete = async () => {
      assert.equal(underWay++, 0);
      await new Promise((resolve) => setImmediate(resolve));
      underWay--;
    };
    rig.startOnly();
    await rig.until('the end of all', () => rig.volumes.length === 0);
    assert.deepEqual(deleted(rig), order);
  });

  test('one whose deletion fails keeps the others, which are never failures', async () => {
    await using rig = await prepare();
    const [first, second] = addReleased(rig, 2);
    rig.provisioner.otherwiseDelete = new Error('busy');
    await rig.start();
    await rig.stop();
    assert.deepEqual(deleted(rig), [first]);
    assert.deepEqual(
      rig.events.map(({ reason, object }) => `${reason} ${object}`).sort(),
      [`VolumeDeletionWaiting ${second}`, `VolumeFailedDelete ${first}`].sort(),
    );
  });

  test('one that must not be deleted yet keeps all of them, until it may', async () => {
    const held = new Set<string>();
    await using rig = await prepare({ methods: { shouldDelete: ({ metadata }) => !held.has(metadata.name) } });
    const [first, second] = addReleased(rig, 2);
    held.add(second!);
    await rig.start();
    await rig.until('the event', () => rig.events.length > 0);
    assert.deepEqual(deleted(rig), []);
    const message = `persistentvolume ${first} has the same storage as persistentvolume ${second}, which cannot be deleted yet`;
    assert.deepEqual(rig.events, [
      { type: 'Normal', reason: 'VolumeDeletionWaiting', message, count: 1, object: first },
    ]);
    held.clear();
    rig.controller.wakeVolume(second!);
    await rig.until('the end of both', () => rig.volumes.length === 0);
    assert.deepEqual(deleted(rig), [first, second]);
  });

  test('one that is to be deleted after all no longer keeps the others', async () => {
    await using rig = await prepare();
    const order = addReleased(rig, 2, handle('the-storage', { persistentVolumeReclaimPolicy: 'Retain' }));
    await rig.start();
    changePolicy(rig, order[0]!, 'Delete');
    await rig.settle();
    assert.deepEqual(deleted(rig), []);
    changePolicy(rig, order[1]!, 'Delete');
    await rig.until('the end of both', () => rig.volumes.length === 0);
    assert.deepEqual(deleted(rig), order);
  });
});

describe('storage that no other volume has', () => {
  test('is deleted without further requests', async () => {
    await using rig = await prepare();
    rig.addVolume('v', 'Released', same);
    rig.addVolume('other', 'Bound', handle('other-storage'));
    rig.addVolume('elsewhere', 'Bound', { spec: { csi: { driver: 'another', volumeHandle: 'the-storage' } } });
    await rig.start();
    assert.deepEqual(deleted(rig), ['v']);
    assert.deepEqual(reads(rig), []);
    assert.deepEqual(rig.events, []);
  });

  test('is deleted although the hash of another one is the same', async () => {
    const [one, other] = ['vol-279548', 'vol-1022192'];
    assert.equal(storageHash(one), storageHash(other));
    await using rig = await prepare();
    rig.addVolume('v', 'Released', handle(one));
    rig.addVolume('other', 'Bound', handle(other));
    await rig.start();
    assert.deepEqual(deleted(rig), ['v']);
    assert.deepEqual(reads(rig), ['other'], 'the other one was looked at');
    assert.deepEqual(rig.events, []);
  });

  test('is deleted although the cache still shows another one that is gone', async () => {
    const held = { isHeld: true };
    await using rig = await prepare({ methods: { shouldDelete: () => !held.isHeld } });
    rig.addVolume('v', 'Released', same);
    rig.addVolume('other', 'Bound', same);
    const match = { resource: 'persistentvolumes', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    const stalled = rig.fault({ match, action: { type: 'watchStall' } });
    rig.startOnly();
    await rig.synced('v');
    await rig.until('the silent watch', () => stalled.hits === 1);
    rig.api.delete(resource.volumes, { name: 'other' });
    held.isHeld = false;
    rig.controller.wakeVolume('v');
    await rig.until('its end', () => rig.volume('v') === undefined);
    assert.deepEqual(reads(rig), ['other']);
  });

  for (const { title, methods } of [
    { title: 'as the provisioner knows no keys', methods: { storageKeys: undefined as never } },
    { title: 'as far as the provisioner can say', methods: { storageKeys: () => [] } },
    { title: 'as the provisioner sees to shared storage itself', methods: { handlesSharedStorage: () => true } },
  ]) {
    test(`is deleted, ${title}`, async () => {
      await using rig = await prepare({ methods });
      rig.addVolume('other', 'Bound', same);
      rig.addVolume('v', 'Released', same);
      await rig.start();
      assert.deepEqual(deleted(rig), ['v']);
    });
  }
});

describe('while the cache does not follow the API server', () => {
  /** Volume `v` is released and must not be deleted yet; then the watch is interrupted and silent. */
  async function interrupted() {
    const clock = new ManualClock();
    const held = { isHeld: true };
    const rig = await prepare({ clock, methods: { shouldDelete: () => !held.isHeld } });
    rig.addVolume('v', 'Released', same);
    const match = { resource: 'persistentvolumes', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    const cut = rig.fault({ match, action: { type: 'watchCut', afterEvents: 1 }, times: 1 });
    const stalled = rig.fault({ match, action: { type: 'watchStall' } });
    rig.startOnly();
    await rig.synced('v');
    await rig.until('the watch', () => cut.hits === 1);
    rig.touchVolume('v');
    await rig.until('the silent watch', () => stalled.hits === 1);
    const letGo = (): void => {
      held.isHeld = false;
      rig.controller.wakeVolume('v');
    };
    return { rig, clock, letGo };
  }

  test('all volumes are listed, and one that the cache does not show keeps the storage as long as it is there', async () => {
    const { rig, clock, letGo } = await interrupted();
    await using _rig = rig;
    rig.addVolume('other', 'Bound', { ...same, annotations: {} });
    letGo();
    await rig.until('the event', () => rig.events.length === 1);
    assert.deepEqual(rig.events, [keptEvent('v', 'other')]);
    assert.deepEqual(deleted(rig), []);
    rig.api.delete(resource.volumes, { name: 'other' });
    await clock.advance(10_000);
    await rig.until('its end', () => rig.volume('v') === undefined);
    assert.deepEqual(deleted(rig), ['v']);
    assert.equal(rig.events.length, 1);
  });

  test('storage that no other volume has is deleted', async () => {
    const { rig, letGo } = await interrupted();
    await using _rig = rig;
    rig.addVolume('other', 'Bound', handle('other-storage'));
    letGo();
    await rig.until('its end', () => rig.volume('v') === undefined);
    assert.deepEqual(deleted(rig), ['v']);
  });
});

test('a provisioner with caches that have no index of storage has all volumes listed, and is woken all the same', async () => {
  const clock = new ManualClock();
  await using rig = await prepare({ clock, indexed: false });
  rig.addVolume('other', 'Bound', same);
  rig.addVolume('v', 'Released', same);
  await rig.start();
  await rig.until('the event', () => rig.events.length > 0);
  assert.deepEqual(rig.events, [keptEvent('v', 'other')]);
  assert.deepEqual(deleted(rig), []);
  await clock.advance(0); // the pause after the list
  rig.api.delete(resource.volumes, { name: 'other' });
  await rig.until('its end', () => rig.volume('v') === undefined);
});
