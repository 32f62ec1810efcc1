/** Objects that are there, or that somebody changes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { OwnerReference } from '../../../src/kube/kube-object.ts';
import { Gi, owner, Rig, type StoredCapacity, zone } from './rig.ts';

const base = (rig: Rig): void => rig.base();
/** Watch events of capacity objects arrive half a second late. */
const lateEvents = ({ server }: Rig): void => {
  server.faults.add({
    match: { resource: 'csistoragecapacities', watch: true },
    action: { type: 'watchDelay', ms: 500 },
  });
};
const other = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x', uid: 'ux' };

/** A rig whose cluster has an object already. */
async function withObject(
  make: (rig: Rig) => StoredCapacity,
  options: Parameters<typeof Rig.start>[0] = {},
): Promise<{ rig: Rig; object: StoredCapacity; [Symbol.asyncDispose](): Promise<void> }> {
  let object: StoredCapacity | undefined;
  const rig = await Rig.start({
    ...options,
    prepare: (it) => {
      it.base();
      object = make(it);
      options.prepare?.(it);
    },
  });
  assert.ok(object);
  return { rig, object, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() };
}

describe('an object from before', () => {
  test('is adopted as it is', async () => {
    await using scene = await withObject((it) => it.addCapacity());
    const { rig, object } = scene;
    assert.equal(rig.only.metadata.uid, object.metadata.uid);
    assert.equal(rig.only.metadata.resourceVersion, object.metadata.resourceVersion);
    assert.equal(rig.calls.length, 1);
    assert.deepEqual(rig.writes, []);
    assert.equal(await rig.counts(), '1/1/0');
  });

  test('is updated once when the amount differs', async () => {
    await using scene = await withObject((it) => it.addCapacity(), {
      prepare: (it) => it.driver.always('GetCapacity', { available_capacity: 2 * Gi }),
    });
    const { rig, object } = scene;
    assert.equal(rig.only.metadata.uid, object.metadata.uid);
    assert.equal(rig.only.capacity, '2Gi');
    assert.deepEqual(
      rig.writes.map(({ verb }) => verb),
      ['update'],
    );
  });

  test('gets the owner it lacks', async () => {
    await using scene = await withObject((it) => it.addCapacity({}, { ownerReferences: [] }));
    assert.deepEqual(scene.rig.only.metadata.ownerReferences, [owner]);
    assert.equal(scene.rig.writes.length, 1);
  });

  test('keeps its owner when none is configured any more', async () => {
    await using scene = await withObject((it) => it.addCapacity(), { owner: null });
    assert.deepEqual(scene.rig.only.metadata.ownerReferences, [owner]);
    assert.deepEqual(scene.rig.writes, []);
  });

  test('keeps owners that do not control it', async () => {
    await using scene = await withObject((it) => it.addCapacity({}, { ownerReferences: [other] }));
    assert.deepEqual(scene.rig.only.metadata.ownerReferences, [other, owner]);
  });

  test('keeps another controlling owner, gets the new amount, and is reported once', async () => {
    const controller = { ...other, controller: true };
    await using scene = await withObject((it) => it.addCapacity({}, { ownerReferences: [controller] }), {
      prepare: (it) => it.driver.always('GetCapacity', { available_capacity: 2 * Gi }),
    });
    const { rig } = scene;
    assert.deepEqual(rig.only.metadata.ownerReferences, [controller]);
    assert.equal(rig.only.capacity, '2Gi');
    rig.controller.refreshClass('sc');
    await rig.until('the next question', () => rig.calls.length >= 2);
    await rig.quiet();
    assert.equal(rig.calls.length, 2);
    assert.equal(rig.writes.length, 1);
    assert.deepEqual(
      rig.warnings().map(({ message }) => message),
      ['A CSIStorageCapacity belongs to another controller, its owner is left as it is'],
    );
  });

  test('loses a maximum that the driver does not report any more', async () => {
    await using scene = await withObject((it) => it.addCapacity({ maximumVolumeSize: '1Mi' }));
    assert.equal(scene.rig.only.maximumVolumeSize, undefined);
    assert.equal(scene.rig.writes.length, 1);
  });

  test('without capacity gets one', async () => {
    await using scene = await withObject((it) => it.addCapacity({ capacity: undefined }));
    assert.equal(scene.rig.only.capacity, '1Gi');
    assert.equal(scene.rig.writes.length, 1);
  });

  const obsolete: [what: string, wanted: string, make: (rig: Rig) => void][] = [
    ['whose class is gone', '0/0', (rig) => void rig.addCapacity()],
    [
      'in a segment that is gone',
      '1/1',
      (rig) => {
        rig.addClass();
        rig.addCapacity({ nodeTopology: { matchLabels: { [zone]: 'z9' } } });
      },
    ],
  ];
  for (const [what, wanted, make] of obsolete) {
    test(`${what} is deleted, and counts as obsolete until then`, async () => {
      await using rig = await Rig.start({
        prepare: (it) => {
          it.addZone();
          make(it);
          it.server.faults.add({
            match: { verb: 'delete', resource: 'csistoragecapacities' },
            action: { type: 'status', code: 500, reason: 'InternalError' },
            times: 1,
          });
        },
      });
      assert.equal(await rig.counts(), `${wanted}/1`);
      await rig.clock.advance(1000);
      await rig.until('the deletion', () => rig.seen.every(({ topology }) => topology[zone] !== 'z9'));
      await rig.quiet();
      assert.equal(await rig.counts(), `${wanted}/0`);
    });
  }

  test('of four that are there two are adopted and two deleted, and two are made', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.addClass('sc2');
        it.addZone('n2', 'z2');
        it.addCapacity();
        it.addCapacity({ storageClassName: 'sc2' });
        it.addCapacity({ storageClassName: 'gone' });
        it.addCapacity({ storageClassName: 'gone', nodeTopology: { matchLabels: { [zone]: 'z2' } } });
      },
    });
    const verbs = rig.writes.map(({ verb }) => verb).sort();
    assert.deepEqual(verbs, ['create', 'create', 'delete', 'delete']);
    assert.equal(await rig.counts(), '4/4/0');
    assert.equal(rig.stored.length, 4);
  });

  test('of two for one item one survives', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.addCapacity();
        it.addCapacity();
      },
    });
    assert.equal(rig.stored.length, 1);
    assert.deepEqual(
      rig.writes.map(({ verb }) => verb),
      ['delete'],
    );
    assert.equal(await rig.counts(), '1/1/0');
  });

  test('is replaced when its selector says its segment otherwise', async () => {
    const matchExpressions = [{ key: zone, operator: 'In', values: ['z1'] }];
    await using scene = await withObject((it) => it.addCapacity({ nodeTopology: { matchExpressions } }));
    assert.deepEqual(scene.rig.only.nodeTopology, { matchLabels: { [zone]: 'z1' } });
    assert.notEqual(scene.rig.only.metadata.uid, scene.object.metadata.uid);
  });

  const foreign: [string, Record<string, string>][] = [
    ['of another manager', { 'csi.storage.k8s.io/drivername': 'drv', 'csi.storage.k8s.io/managed-by': 'manual' }],
    ['without labels', {}],
  ];
  for (const [what, labels] of foreign) {
    test(`${what} is left alone`, async () => {
      await using scene = await withObject((it) => it.addCapacity({}, { labels }));
      const { rig, object } = scene;
      assert.equal(rig.stored.length, 2);
      const kept = rig.stored.find(({ metadata }) => metadata.uid === object.metadata.uid);
      assert.equal(kept?.metadata.resourceVersion, object.metadata.resourceVersion);
      assert.deepEqual(
        rig.writes.map(({ verb }) => verb),
        ['create'],
      );
    });
  }
});

describe('an object that somebody touches', () => {
  test('comes back when it was deleted', async () => {
    await using rig = await Rig.start({ prepare: base });
    const before = rig.only;
    rig.removeCapacity(before);
    await rig.until('a new object', () => rig.stored.length === 1);
    assert.notEqual(rig.only.metadata.uid, before.metadata.uid);
  });

  test('without its labels stays, beside a new one', async () => {
    await using rig = await Rig.start({ prepare: base });
    const before = rig.only;
    rig.change(before, {}, { labels: {} });
    await rig.until('a second object', () => rig.stored.length === 2);
    await rig.quiet();
    assert.ok(rig.stored.some(({ metadata }) => metadata.uid === before.metadata.uid));
    assert.equal(await rig.counts(), '1/1/0');
  });

  test('is put right with the next refresh', async () => {
    await using rig = await Rig.start({ prepare: base, pollIntervalMs: 60_000 });
    rig.forget();
    rig.change(rig.only, { capacity: '5Gi' });
    await rig.quiet();
    assert.deepEqual(rig.writes, []);
    assert.equal(rig.only.capacity, '5Gi');
    await rig.clock.advance(60_000);
    await rig.until('the right amount', () => rig.only.capacity === '1Gi');
  });

  test('is deleted when its class does not exist', async () => {
    await using rig = await Rig.start({ prepare: base });
    rig.addCapacity({ storageClassName: 'nope' });
    await rig.until('the deletion', () => rig.stored.length === 1);
    await rig.quiet();
    assert.equal(rig.only.storageClassName, 'sc');
  });

  test('replaced by another of its name settles as one with the right amount', async () => {
    await using rig = await Rig.start({ prepare: base });
    const { name } = rig.only.metadata;
    rig.removeCapacity(rig.only);
    rig.addCapacity({ capacity: '1Mi' }, { name });
    await rig.until('one right object', () => rig.stored.length === 1 && rig.only.capacity === '1Gi');
    await rig.quiet();
    assert.equal(rig.stored.length, 1);
    assert.equal(rig.only.capacity, '1Gi');
  });

  test('follows the driver with each interval', async () => {
    await using rig = await Rig.start({ prepare: base, pollIntervalMs: 5000 });
    rig.driver.always('GetCapacity', { available_capacity: 2 * Gi });
    await rig.clock.advance(4999);
    assert.equal(rig.only.capacity, '1Gi');
    await rig.clock.advance(1);
    await rig.until('the new amount', () => rig.only.capacity === '2Gi');
    assert.equal(rig.calls.length, 2, 'one question for each refresh');
  });

  test('goes with its class', async () => {
    await using rig = await Rig.start({ prepare: base });
    rig.removeClass();
    await rig.until('the object to go', () => rig.stored.length === 0);
    await rig.quiet();
    assert.equal(await rig.counts(), '0/0/0');
  });

  test('comes back with its class, and the driver hears of the new parameters', async () => {
    await using rig = await Rig.start({ prepare: base });
    rig.removeClass();
    await rig.until('the object to go', () => rig.stored.length === 0);
    await rig.quiet();
    rig.forget();
    rig.addClass('sc', { parameters: { pool: 'slow' } });
    await rig.until('the new object', () => rig.stored.length === 1);
    assert.deepEqual({ ...(rig.calls[0]?.request['parameters'] as object) }, { pool: 'slow' });
  });
});

describe('node deployment', () => {
  const node = { name: 'node01', labels: { [zone]: 'n' } };

  test('publishes the own segment and watches no nodes', async () => {
    await using rig = await Rig.start({ node, prepare: (it) => void it.addClass() });
    assert.deepEqual(rig.seen, [{ class: 'sc', topology: { [zone]: 'n' }, capacity: '1Gi' }]);
    assert.equal(rig.only.metadata.labels?.['csi.storage.k8s.io/managed-by'], 'external-provisioner-node01');
    const watched = rig.server.requestLog.entries().map(({ resource }) => resource);
    assert.ok(watched.includes('csistoragecapacities'));
    assert.ok(!watched.includes('nodes') && !watched.includes('csinodes'));
  });

  test('leaves the objects of other nodes alone', async () => {
    const labels = {
      'csi.storage.k8s.io/drivername': 'drv',
      'csi.storage.k8s.io/managed-by': 'external-provisioner-node02',
    };
    await using rig = await Rig.start({
      node,
      prepare: (it) => {
        it.addClass();
        it.addCapacity({}, { labels });
      },
    });
    assert.equal(rig.stored.length, 2);
    assert.deepEqual(
      rig.writes.map(({ verb }) => verb),
      ['create'],
    );
  });

  test('without topology publishes for everywhere, and keeps that object', async () => {
    await using rig = await Rig.start({
      node: { ...node, labels: {} },
      prepare: (it) => void it.addClass(),
    });
    assert.deepEqual(rig.only.nodeTopology, {});
    rig.forget();
    rig.controller.refreshClass('sc');
    await rig.until('the next question', () => rig.calls.length >= 1);
    await rig.quiet();
    assert.equal(rig.calls.length, 1);
    assert.deepEqual(rig.writes, []);
  });
});

test('a driver without topology keys has one object for everywhere, which stays', async () => {
  await using rig = await Rig.start({
    prepare: (it) => {
      it.addClass();
      it.addNode('n1', {});
      it.addCsiNode('n1', []);
    },
  });
  const { uid } = rig.only.metadata;
  assert.deepEqual(rig.only.nodeTopology, {});
  const [call] = rig.calls;
  assert.ok(call?.request['accessible_topology'], 'a topology is there, without segments');
  assert.equal(await rig.counts(), '1/1/0');
  rig.forget();
  rig.controller.refreshClass('sc');
  await rig.until('the next question', () => rig.calls.length >= 1);
  await rig.quiet();
  assert.deepEqual(rig.writes, []);
  assert.equal(rig.only.metadata.uid, uid);
});

test('a new leader adopts what the old one made', async () => {
  await using first = await Rig.start({ prepare: base });
  const before = first.only;
  await first.stop();
  const { url } = first;
  await using second = await Rig.start({ server: { api: first.server, url } });
  assert.equal(second.only.metadata.resourceVersion, before.metadata.resourceVersion);
  assert.deepEqual(second.writes, []);
  assert.equal(await second.counts(), '1/1/0');
});

describe('an owner that was replaced, such as by kubectl delete --cascade=orphan', () => {
  const replaced = { ...owner, uid: 'u2' };
  const ownersOf = (rig: Rig): unknown => rig.only.metadata.ownerReferences;

  test('is found again for an object that the garbage collector has deleted with the former one', async () => {
    await using rig = await Rig.start({ prepare: base, findOwner: () => Promise.resolve(replaced) });
    assert.deepEqual(ownersOf(rig), [owner]);
    await rig.clock.advance(60_000);
    rig.removeCapacity(rig.only);
    await rig.until('the new object', () =>
      rig.stored.some(({ metadata }) => metadata.ownerReferences?.[0]?.uid === 'u2'),
    );
    await rig.quiet();
    assert.deepEqual(ownersOf(rig), [replaced]);
  });

  test('is found again for an object that has lost the former one', async () => {
    await using rig = await Rig.start({ prepare: base, findOwner: () => Promise.resolve(replaced) });
    await rig.clock.advance(60_000);
    rig.change(rig.only, {}, { ownerReferences: [] });
    await rig.quiet();
    rig.controller.refreshAll();
    await rig.until('the owner', () => rig.only.metadata.ownerReferences?.length === 1);
    assert.deepEqual(ownersOf(rig), [replaced]);
  });

  test('while there is no owner, no objects are created; they get the new owner once it exists', async () => {
    let find = (): Promise<OwnerReference> => Promise.reject(new Error('nothing controls the Pod'));
    await using rig = await Rig.start({ prepare: base, findOwner: () => find() });
    await rig.clock.advance(60_000);
    rig.removeCapacity(rig.only);
    await rig.clock.advance(10_000);
    assert.deepEqual(rig.stored, []);
    find = () => Promise.resolve(replaced);
    rig.controller.refreshAll();
    await rig.clock.advance(10_000);
    assert.deepEqual(rig.stored, [], 'it is looked for once a minute');
    await rig.clock.advance(60_000);
    rig.controller.refreshAll();
    await rig.until('the object', () => rig.stored.length === 1);
    assert.deepEqual(ownersOf(rig), [replaced]);
  });

  test('the last known owner is kept while the look-up fails', async () => {
    const away = new Error('get object', { cause: new Error('unavailable') });
    await using rig = await Rig.start({ prepare: base, findOwner: () => Promise.reject(away) });
    await rig.clock.advance(60_000);
    const { uid } = rig.only.metadata;
    rig.removeCapacity(rig.only);
    await rig.until('the new object', () => rig.stored.some(({ metadata }) => metadata.uid !== uid));
    await rig.quiet();
    assert.deepEqual(ownersOf(rig), [owner]);
  });
});

describe('between a write and its watch event', () => {
  test('an object that was just made is not made again', async () => {
    await using rig = await Rig.start({ prepare: lateEvents });
    rig.base();
    await rig.until('the object', () => rig.writes.some(({ status }) => status === 201));
    rig.controller.refreshClass('sc');
    await rig.until('a second question', () => rig.calls.length >= 2);
    await rig.quiet();
    assert.deepEqual(
      rig.writes.map(({ verb }) => verb),
      ['create'],
    );
  });

  test('of two processes that made an object each, such as in a rolling update, both keep the same one', async () => {
    await using first = await Rig.start({ prepare: lateEvents });
    await using second = await Rig.start({ server: { api: first.server, url: first.url } });
    first.base();
    await Promise.all([first, second].map((rig) => rig.until('a question', () => rig.calls.length > 0)));
    await Promise.all([first.quiet(), second.quiet()]);
    assert.equal(first.stored.length, 1);
    const creates = [first, second].map((rig) => rig.writes.filter(({ verb }) => verb === 'create').length);
    assert.ok(
      creates.every((count) => count <= 1),
      `${String(creates)} creates`,
    );
    assert.deepEqual([await first.counts(), await second.counts()], ['1/1/0', '1/1/0']);
  });
});
