/** What happened to PersistentVolumes while no process ran decides what may be deleted. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { untilAborted } from '../../../src/base/abort.ts';
import type { IntentRecord } from '../../../src/provision/intent-journal/intent-journal.ts';
import { lateMs, leftRecord, maxCallMs, type RecoveryScene, recoveryScene } from './recovery-scene.ts';
import { resource, type Rig, type VolumeSketch } from './rig.ts';
import { unclear } from './scripted-backend.ts';

const historyWatch = { match: { verb: 'watch', resource: 'persistentvolumes', watch: true } } as const;
const expired = { type: 'watchError', code: 410, reason: 'Expired' } as const;

/** A record of a claim that is gone by the time a new process starts. */
async function leftAlone(
  prepare: (scene: RecoveryScene) => void = () => undefined,
  { record = {} }: { record?: Partial<IntentRecord> } = {},
): Promise<RecoveryScene> {
  const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid, record), owner: 'own' }] });
  scene.backend.make(scene.name);
  prepare(scene);
  scene.rig.deleteClaim();
  return scene;
}

/** A volume that somebody else created, and removed without its storage. */
function comeAndGo(rig: Rig, name: string, sketch: VolumeSketch = {}): void {
  rig.addVolume(name, 'Bound', sketch);
  rig.releaseVolume(name);
  rig.api.delete(resource.volumes, { name });
}

/** Lets more time pass than any wait takes. */
async function waitLong({ rig, clock }: RecoveryScene): Promise<void> {
  await clock.advance(10 * lateMs);
  await rig.settle();
}

describe('a volume that came and went while no process ran', () => {
  for (const policy of ['Retain', 'Delete']) {
    test(`with policy ${policy}: its storage is left as it is, and the record closed`, async () => {
      const scene = await leftAlone(({ rig, name, uid }) =>
        comeAndGo(rig, name, {
          spec: { claimRef: { namespace: 'ns', name: 'a', uid }, persistentVolumeReclaimPolicy: policy },
        }),
      );
      await using rig = scene.rig;
      const { backend, seen } = scene;
      await rig.start();
      await scene.undone();
      await waitLong(scene);
      assert.deepEqual(backend.revokes, [], 'CreateVolume might make the storage again');
      assert.deepEqual(backend.deleted, []);
      assert.equal(backend.storage.size, 1);
      assert.equal(backend.released.length, 1);
      assert.deepEqual([seen.revoked, seen.reported], [0, []]);
      const line = rig.log.find(({ message }) => message.includes('its storage is left as it is'));
      assert.partialDeepStrictEqual(line?.fields, { policy, storage: [scene.handle] });
    });
  }

  for (const [what, spec, record] of [
    ['for another claim', (uid: string) => ({ claimRef: { namespace: 'ns', name: 'b', uid: `${uid}-b` } }), {}],
    ['for nobody', () => ({}), {}],
    [
      'with other storage',
      (uid: string) => ({
        claimRef: { namespace: 'ns', name: 'a', uid },
        csi: { driver: 'drv', volumeHandle: 'other' },
      }),
      { phase: 'delete', handle: 'the-handle' },
    ],
    [
      'with other storage than ours, as the name was taken',
      (uid: string) => ({ claimRef: { namespace: 'ns', name: 'a', uid } }),
      { nameTaken: true },
    ],
  ] as const) {
    test(`${what}: nobody can tell what became of the storage, which is reported and stays`, async () => {
      const scene = await leftAlone(({ rig, name, uid }) => comeAndGo(rig, name, { spec: spec(uid) }), { record });
      await using rig = scene.rig;
      const { backend, journal, seen, uid } = scene;
      await rig.start();
      await scene.passUntil('the report', () => seen.reported.length > 0);
      await waitLong(scene);
      assert.deepEqual(seen.reported, ['unproved']);
      assert.equal(journal.records.get(uid)?.reason, 'unproved');
      assert.match(journal.records.get(uid)?.problem ?? '', /has existed since the volume was begun/);
      assert.deepEqual(backend.deleted, []);
      assert.deepEqual(backend.revokes, []);
    });
  }

  test('that another instance may have made: nobody can tell what is left here, which is reported', async () => {
    const scene = await leftAlone(({ rig, name, uid }) =>
      comeAndGo(rig, name, { spec: { claimRef: { namespace: 'ns', name: 'a', uid } } }),
    );
    await using rig = scene.rig;
    scene.backend.isElsewhere = () => false;
    await rig.start();
    await scene.passUntil('the report', () => scene.seen.reported.length > 0);
    assert.equal(scene.journal.records.get(scene.uid)?.reason, 'unproved');
    assert.deepEqual(scene.backend.deleted, []);
  });

  for (const [what, record, revokes] of [
    ['of which the record knows that it is ours', (handle: string) => ({ phase: 'delete', handle }) as const, 0],
    ['which turns out to be ours', () => ({}), 1],
  ] as const) {
    test(`under another name, with storage ${what}: it stays`, async () => {
      const scene = await recoveryScene({
        found: (uid) => [{ record: leftRecord(uid, record(`handle-pvc-${uid}`)), owner: 'own' }],
      });
      await using rig = scene.rig;
      const { backend, seen, handle, name } = scene;
      backend.make(name);
      comeAndGo(rig, 'imported', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: handle } } });
      rig.deleteClaim();
      await rig.start();
      await scene.passUntil('the report', () => seen.reported.length > 0);
      await waitLong(scene);
      assert.deepEqual(seen.reported, ['unproved']);
      assert.equal(backend.revokes.length, revokes);
      assert.deepEqual(backend.deleted, []);
    });
  }

  test('before the record was begun does not matter', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, uid, name, handle } = scene;
    backend.make(name);
    comeAndGo(rig, name);
    const since = rig.addClaim('b').metadata.resourceVersion ?? '';
    journal.leave({ record: leftRecord(uid, { since }), owner: 'own' });
    rig.deleteClaim();
    await rig.start();
    await scene.undone();
    assert.equal(backend.deleted[0], handle);
  });
});

test('a volume that is there and is that of the record keeps its storage, and the record is closed', async () => {
  const scene = await leftAlone(({ rig, name, uid }) =>
    rig.addVolume(name, 'Released', {
      spec: { claimRef: { namespace: 'ns', name: 'a', uid }, persistentVolumeReclaimPolicy: 'Retain' },
    }),
  );
  await using rig = scene.rig;
  await rig.start();
  await scene.undone();
  await waitLong(scene);
  assert.deepEqual(scene.backend.revokes, []);
  assert.deepEqual(scene.seen.reported, []);
  assert.equal(scene.backend.storage.size, 1);
});

describe('a history that the API server does not have any more', () => {
  test('proves nothing: what is left is reported and stays', async () => {
    const scene = await leftAlone(({ rig }) => {
      rig.addClass('later');
      rig.server.compact();
    });
    await using rig = scene.rig;
    const { backend, journal, seen, uid } = scene;
    await rig.start();
    await scene.passUntil('the report', () => seen.reported.length > 0);
    await waitLong(scene);
    assert.deepEqual(seen.reported, ['unproved']);
    assert.match(journal.records.get(uid)?.problem ?? '', /no longer knows which PersistentVolumes there were/);
    assert.deepEqual(backend.revokes, []);
    assert.equal(backend.storage.size, 1);
  });

  test('does not keep a claim from its volume', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    rig.server.compact();
    rig.startOnly();
    await rig.until('the volume', () => rig.volume(scene.name));
    await scene.closedInTime();
    assert.deepEqual(scene.seen.reported, []);
  });

  for (const policy of ['Retain', 'Delete']) {
    test(`is not needed while the PersistentVolume exists: its reclaim policy ${policy} decides about the storage`, async () => {
      const scene = await leftAlone(({ rig, name, uid }) => {
        const claimRef = { namespace: 'ns', name: 'a', uid };
        rig.addVolume(name, 'Bound', {
          spec: {
            claimRef,
            persistentVolumeReclaimPolicy: policy,
            csi: { driver: 'drv', volumeHandle: `handle-${name}` },
          },
        });
        rig.releaseVolume(name);
        rig.server.compact();
      });
      await using rig = scene.rig;
      const { backend, clock, seen, handle } = scene;
      await rig.start();
      await clock.advance(maxCallMs - 1);
      await rig.settle();
      assert.deepEqual(backend.deleted, []);
      await scene.undone();
      await waitLong(scene);
      assert.deepEqual(seen.reported, []);
      assert.deepEqual(backend.revokes, []);
      assert.deepEqual(backend.deleted, policy === 'Delete' ? [handle] : []);
    });
  }

  for (const [what, spec] of [
    ['belongs to another claim', () => ({ claimRef: { namespace: 'ns', name: 'a', uid: 'another' } })],
    ['has no claim', () => ({})],
    [
      'has storage of another driver',
      (uid: string) => ({
        claimRef: { namespace: 'ns', name: 'a', uid },
        csi: { driver: 'another', volumeHandle: 'x' },
      }),
    ],
  ] as const) {
    test(`is needed if the PersistentVolume of that name ${what}: the record becomes unproved`, async () => {
      const scene = await leftAlone(({ rig, name, uid }) => {
        rig.addVolume(name, 'Available', { spec: spec(uid) });
        rig.addClass('later');
        rig.server.compact();
      });
      await using _rig = scene.rig;
      const { backend, journal, seen, uid } = scene;
      await scene.rig.start();
      await scene.passUntil('the report', () => seen.reported.length > 0);
      await waitLong(scene);
      assert.deepEqual(seen.reported, ['unproved']);
      assert.equal(journal.records.get(uid)?.reason, 'unproved');
      assert.deepEqual(backend.deleted, []);
    });
  }

  test('is asked of other servers behind the address: one that was restarted does not count', async () => {
    const scene = await leftAlone();
    await using rig = scene.rig;
    // the first watch is that of the cache
    const restarted = rig.fault({ ...historyWatch, action: expired, after: 1, times: 2 });
    await rig.start();
    await scene.undone();
    assert.equal(restarted.hits, 2);
    assert.equal(scene.backend.deleted[0], scene.handle);
    assert.deepEqual(scene.seen.reported, []);
  });

  test('is read from the oldest version on that is still known: younger records are proved by it', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, seen } = scene;
    const uids = ['b', 'c', 'd', 'e'].map((name) => {
      const { uid, resourceVersion: since = '' } = rig.addClaim(name, { finalizers: [] }).metadata;
      const { claim, ...left } = leftRecord(uid, { since });
      journal.leave({ record: { ...left, claim: { ...claim, name } }, owner: 'own' });
      backend.make(`pvc-${uid}`);
      return uid;
    });
    rig.server.compact(Number(journal.records.get(uids[2] ?? '')?.since));
    for (const name of ['a', 'b', 'c', 'd', 'e']) rig.deleteClaim(name);
    await rig.start();
    await scene.passUntil('the end', () => journal.records.size === 2 && seen.reported.length === 2);
    assert.deepEqual(seen.reported, ['unproved', 'unproved']);
    assert.deepEqual([...journal.records.keys()], uids.slice(0, 2));
    assert.deepEqual(
      [...backend.storage.keys()],
      uids.slice(0, 2).map((uid) => `pvc-${uid}`),
    );
  });
});

test('a history that cannot be read yet is waited for, and nothing is deleted meanwhile', async () => {
  const scene = await leftAlone();
  await using rig = scene.rig;
  const { backend, clock, seen, handle } = scene;
  const silent = rig.fault({ ...historyWatch, action: { type: 'status', code: 500 }, after: 1 });
  await rig.start();
  await clock.advance(5 * 60_000);
  assert.deepEqual(backend.revokes, []);
  assert.deepEqual(seen.reported, []);
  assert.equal(seen.waiting().get('proof'), 1);
  silent.remove();
  await scene.undone();
  assert.equal(backend.deleted[0], handle);
});

test('the patience for a history begins anew once it was read, however long the backend fails then', async () => {
  const scene = await leftAlone();
  await using rig = scene.rig;
  const { backend, seen, handle } = scene;
  const silent = rig.fault({ ...historyWatch, action: { type: 'status', code: 500 }, after: 1 });
  await rig.start();
  await scene.passUntil('the wait for a proof', () => seen.waiting().get('proof') === 1);
  backend.otherwiseRevoke = unclear('away');
  silent.remove();
  await scene.passUntil('a revoke that fails', () => backend.revokes.length > 0);
  await rig.settle();
  assert.equal(seen.waiting().get('proof'), 0);
  backend.otherwiseRevoke = (plan, context) => backend.undo(plan, context);
  await scene.undone();
  assert.equal(backend.deleted[0], handle);
});

test('a history that cannot be read for a quarter of an hour is given up', async () => {
  const scene = await leftAlone();
  await using rig = scene.rig;
  const { backend, clock, seen } = scene;
  rig.fault({ ...historyWatch, action: { type: 'status', code: 500 }, after: 1 });
  await rig.start();
  await clock.advance(15 * 60_000);
  assert.deepEqual(seen.reported, []);
  await scene.passUntil('the report', () => seen.reported.length > 0);
  assert.ok(clock.monotonicMs() < 20 * 60_000);
  assert.deepEqual(seen.reported, ['unproved']);
  assert.deepEqual(backend.revokes, []);
});

test('an API server that has gone back to an older state proves nothing of any open record', async () => {
  const scene = await leftAlone();
  await using rig = scene.rig;
  const { backend, journal, seen, uid } = scene;
  await rig.start();
  rig.fault({ match: { verb: 'list', resource: 'persistentvolumes' }, action: { type: 'staleRead', rvBack: 20 } });
  await scene.passUntil('the report', () => seen.reported.length > 0);
  assert.deepEqual(seen.reported, ['unproved']);
  assert.equal(journal.records.get(uid)?.since, undefined);
  assert.deepEqual(backend.deleted, []);
});

test('the version of a record that another process has left is renewed within two seconds of the start', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { journal, uid, clock } = scene;
  const since = rig.addClass('earlier').metadata.resourceVersion ?? '';
  journal.leave({ record: leftRecord(uid, { since }), owner: 'own' });
  rig.deleteClaim();
  await rig.start();
  rig.addVolume('other', 'Available');
  await rig.settle();
  await clock.advance(2000);
  const renewed = journal.records.get(uid)?.since ?? '';
  assert.ok(Number(renewed) > Number(since), `${since} became ${renewed}`);
});

test('the version of a record is not renewed past a PersistentVolume of its name, so that its storage stays', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, name, uid } = scene;
  const call = Promise.withResolvers<never>();
  backend.fulfilSteps.push((_plan, { signal }) => untilAborted(call.promise, signal));
  rig.startOnly();
  await rig.until('the call', () => backend.fulfils.length === 1);
  backend.make(name);
  const since = journal.records.get(uid)?.since;
  comeAndGo(rig, name, { spec: { claimRef: { namespace: 'ns', name: 'a', uid } } });
  rig.addVolume('other', 'Available');
  await scene.pass(60_000);
  assert.equal(journal.records.get(uid)?.since, since);
  rig.deleteClaim();
  call.reject(unclear());
  await scene.undone();
  assert.deepEqual(backend.deleted, []);
});
