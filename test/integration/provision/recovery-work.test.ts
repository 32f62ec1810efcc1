/** Names, stores, caches and the end of a run, with a recoverable provisioner. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { noRecords } from '../../../src/provision/intent-journal/intent-journal.ts';
import { resource, type Rig } from './rig.ts';
import { lateMs, leftRecord, recoveryScene } from './recovery-scene.ts';
import { final, lateAnswer, type RevokeStep, unclear } from './scripted-backend.ts';
import { madeVolume } from './scripted-provisioner.ts';

describe('claims whose volumes have the same name', () => {
  const volumeName = (): string => 'pvc-same';

  test('wait for each other, with one event, and the second is refused when the first has its volume', async () => {
    const scene = await recoveryScene({ rig: { controller: { volumeName } } });
    await using rig = scene.rig;
    const { backend, clock, uid } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    const second = rig.addClaim('b', { finalizers: [] }).metadata.uid;
    await rig.synced(second);
    await clock.advance(rig.limiter.delays(second)[0] ?? NaN);
    await rig.synced(second, 2);
    await rig.until('the volume', () => rig.volumes.length === 1);
    await rig.stop();
    assert.deepEqual(
      backend.plans.map(({ name }) => name),
      ['pvc-same'],
    );
    assert.equal(rig.volumes[0]?.spec.claimRef?.uid, uid);
    const waits = rig.events.filter(({ object, reason }) => object === 'ns/b' && reason === 'ProvisioningWaiting');
    assert.deepEqual(
      waits.map(({ message }) => message),
      [`Waiting: the volume name "pvc-same" is in use for claim ns/a with UID ${uid}`],
    );
  });

  test('get theirs one after the other: the first is undone completely before the second is begun', async () => {
    const uids: string[] = [];
    const bothUids = (): string => `pvc-${uids.join('-')}`;
    const scene = await recoveryScene({ rig: { controller: { volumeName: bothUids } } });
    await using rig = scene.rig;
    const { backend, passUntil } = scene;
    let deletedBefore = 0;
    backend.fulfilSteps.push(lateAnswer(backend), ({ name }) => {
      deletedBefore = backend.deleted.length;
      return Promise.resolve(backend.make(name));
    });
    backend.revokeSteps.push(unclear('busy'));
    const second = rig.addClaim('b', { finalizers: [] }).metadata.uid;
    uids.push(scene.uid, second);
    await rig.start();
    await rig.synced(second);
    rig.deleteClaim();
    await passUntil('the first try', () => backend.revokes.length === 1);
    await passUntil('the second try', () => backend.revokes.length === 2);
    await passUntil('the deletion', () => backend.deleted.length === 1);
    await passUntil('the second volume', () => rig.volume(bothUids()));
    assert.equal(deletedBefore, 1);
    assert.deepEqual(backend.deleted, [`handle-${bothUids()}`]);
    assert.equal(rig.volume(bothUids())?.spec.claimRef?.uid, second);
    assert.equal(rig.volume(bothUids())?.spec.csi?.volumeHandle, `handle-${bothUids()}-2`);
  });

  test('do not hold each other up when the name is not that of one claim alone: the first is reported', async () => {
    const scene = await recoveryScene({ rig: { controller: { volumeName } } });
    await using rig = scene.rig;
    const { backend, seen, uid, journal } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    rig.deleteClaim();
    await rig.until('the report', () => seen.open.stuck === 1);
    const second = rig.addClaim('b', { finalizers: [] }).metadata.uid;
    const volume = await rig.until('the second volume', () => rig.volume('pvc-same'));
    assert.equal(volume.spec.claimRef?.uid, second);
    assert.deepEqual(seen.reported, ['unproved']);
    assert.match(journal.records.get(uid)?.problem ?? '', /does not contain the whole UID/);
    assert.deepEqual(backend.deleted, []);
    assert.deepEqual(backend.revokes, []);
  });
});

describe('a volume that cannot be saved', () => {
  test('as another one has the name, keeps its record and is saved when that is gone', async () => {
    const scene = await recoveryScene({
      rig: { controller: { saveLimiter: new ExponentialLimiter({ baseMs: 5, maxMs: 1000 }) } },
    });
    await using rig = scene.rig;
    const { backend, name, journal, passUntil, uid } = scene;
    backend.fulfilSteps.push((plan) => {
      const claimRef = { namespace: 'ns', name: 'a', uid };
      rig.addVolume(name, 'Available', { spec: { csi: { driver: 'drv', volumeHandle: 'other' }, claimRef } });
      return Promise.resolve(backend.make(plan.name));
    });
    await rig.start();
    assert.equal(journal.records.size, 1);
    assert.deepEqual(backend.deleted, []);
    await rig.until('the event', () => rig.events.some(({ message }) => message.includes('with other storage')));
    assert.ok(backend.fulfils.length <= 2, `${backend.fulfils.length} attempts`);
    rig.api.delete(resource.volumes, { name });
    await passUntil('the volume', () => rig.volume(name));
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, `handle-${name}`);
    await scene.closed();
  });

  test('as its name was taken while it waited in the background, is saved by a later attempt', async () => {
    const saveLimiter = new ExponentialLimiter({ baseMs: 10_000, maxMs: 10_000 });
    const scene = await recoveryScene({ rig: { controller: { saveLimiter } } });
    await using rig = scene.rig;
    const { clock, name, uid } = scene;
    const refusal = rig.refuse('create', 'persistentvolumes', { code: 500 });
    rig.startOnly();
    await rig.until('the failure', () => rig.unsavedLines === 1);
    refusal.remove();
    const claimRef = { namespace: 'ns', name: 'a', uid };
    rig.addVolume(name, 'Available', { spec: { csi: { driver: 'drv', volumeHandle: 'other' }, claimRef } });
    await clock.advance(10_000);
    await rig.until('the sync', () => rig.events.some(({ message }) => message.startsWith('Waiting for a deletion')));
    rig.api.delete(resource.volumes, { name });
    await scene.passUntil('the volume', () => rig.volume(name));
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, scene.handle);
    await scene.closed();
  });

  test('as an administrator reserved the name for the claim, with other storage, keeps its record', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, name, journal, uid, passPause } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    const claimRef = { namespace: 'ns', name: 'a' };
    rig.addVolume(name, 'Available', { spec: { csi: { driver: 'drv', volumeHandle: 'other' }, claimRef } });
    await passPause();
    await rig.until('the event', () => rig.events.some(({ message }) => message.includes('with other storage')));
    assert.equal(journal.records.get(uid)?.nameTaken, true);
    assert.deepEqual(backend.deleted, []);
  });

  test('as another instance has saved its volume of the same name and handle, keeps its record', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, handle, name, journal, uid } = scene;
    backend.isElsewhere = ({ metadata }) => metadata.annotations?.['made-by'] === 'another instance';
    backend.fulfilSteps.push((plan) => {
      const claimRef = { namespace: 'ns', name: 'a', uid };
      const annotations = { 'made-by': 'another instance' };
      rig.addVolume(name, 'Available', {
        annotations,
        spec: { csi: { driver: 'drv', volumeHandle: handle }, claimRef },
      });
      return Promise.resolve(backend.make(plan.name));
    });
    await rig.start();
    await rig.until('the event', () => rig.events.some(({ message }) => message.includes('another instance')));
    assert.equal(journal.records.get(uid)?.nameTaken, true);
    assert.deepEqual(backend.deleted, []);
  });

  test('as its claim was bound to another one of its name, is reported, also when both are gone', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, name, uid, seen, journal } = scene;
    backend.fulfilSteps.push((plan) => {
      const claimRef = { namespace: 'ns', name: 'a', uid };
      rig.addVolume(name, 'Bound', { spec: { csi: { driver: 'drv', volumeHandle: 'other' }, claimRef } });
      return Promise.resolve(backend.make(plan.name));
    });
    await rig.start();
    const claim = rig.changeClaim('a', {}, { volumeName: name });
    rig.api.updateStatus(resource.claims, { ...structuredClone(claim), status: { phase: 'Bound' } });
    await rig.until('the report', () => seen.reported.length > 0);
    assert.equal(journal.records.size, 1);
    assert.deepEqual(backend.deleted, []);
    rig.api.delete(resource.volumes, { name });
    rig.deleteClaim();
    await scene.passUntil('the other report', () => journal.records.get(uid)?.reason === 'unproved');
    assert.deepEqual(seen.reported, ['undecidable', 'unproved']);
    assert.equal(journal.records.get(uid)?.reason, 'unproved');
    assert.deepEqual(backend.deleted, []);
  });

  const tenSeconds = (): ExponentialLimiter => new ExponentialLimiter({ baseMs: 10_000, maxMs: 10_000 });

  test('as the answer was lost, is not created again when its storage is kept', async () => {
    const scene = await recoveryScene({ rig: { controller: { saveLimiter: tenSeconds() } } });
    await using rig = scene.rig;
    const { backend, clock, name, handle } = scene;
    const match = { resource: 'persistentvolumeclaims', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    rig.fault({ match, action: { type: 'watchStall' } });
    const create = { verb: 'create', resource: 'persistentvolumes' };
    rig.fault({ match: create, action: { type: 'dropAfter' }, times: 1 });
    rig.fault({ match: create, action: { type: 'status', code: 500 }, times: 1 });
    rig.startOnly();
    await rig.until('the first failure', () => rig.unsavedLines === 1);
    await rig.until('the second failure', () => rig.unsavedLines === 2);
    const volume = structuredClone(rig.volume(name))!;
    volume.spec.persistentVolumeReclaimPolicy = 'Retain';
    rig.api.update(resource.volumes, volume as never);
    rig.deleteClaim();
    rig.api.delete(resource.volumes, { name });
    rig.setFinalizers(name, []);
    await clock.advance(10_000);
    await rig.until('the third failure', () => rig.unsavedLines === 3);
    assert.notEqual(rig.claimInCache('a'), undefined, 'the cache was kept behind');
    const { err } = rig.log.filter(({ message }) => message.startsWith('The volume could not be saved')).at(-1)
      ?.fields as { err: Error };
    assert.match(err.message, /not worked on here any more: the claim was deleted meanwhile$/);
    assert.deepEqual(rig.volumes, []);
    assert.deepEqual(backend.deleted, []);
    assert.deepEqual(
      [...backend.storage.values()].map((each) => each.handle),
      [handle],
    );
  });

  for (const { what, isThere } of [
    { what: 'counts as saved, with its event, when its claim was bound to it meanwhile', isThere: true },
    { what: 'is not created again when its claim was bound to it and somebody has removed it', isThere: false },
  ]) {
    test(`as the answer was lost, ${what}`, async () => {
      const saveLimiter = new ExponentialLimiter({ baseMs: 10_000, maxMs: 10_000 });
      const scene = await recoveryScene({ rig: { controller: { saveLimiter } } });
      await using rig = scene.rig;
      const { backend, clock, name } = scene;
      const create = { verb: 'create', resource: 'persistentvolumes' };
      const lost = rig.fault({ match: create, action: { type: 'dropAfter' } });
      rig.startOnly();
      await rig.until('the lost answer', () => rig.unsavedLines === 1);
      const claim = rig.changeClaim('a', {}, { volumeName: name });
      rig.api.updateStatus(resource.claims, { ...structuredClone(claim), status: { phase: 'Bound' } });
      if (!isThere) {
        const volume = structuredClone(rig.volume(name))!;
        volume.spec.persistentVolumeReclaimPolicy = 'Retain';
        rig.api.update(resource.volumes, volume as never);
        rig.api.delete(resource.volumes, { name });
        rig.setFinalizers(name, []);
      }
      await clock.advance(60_000);
      await rig.settle();
      assert.equal(lost.hits, 1, 'one request');
      assert.equal(rig.volume(name) !== undefined, isThere);
      assert.equal(rig.events.filter(({ reason }) => reason === 'ProvisioningSucceeded').length, isThere ? 1 : 0);
      assert.deepEqual(backend.deleted, []);
      assert.equal(backend.storage.size, 1);
    });
  }

  test('is not asked for again while it waits to be saved in the background', async () => {
    const saveLimiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 });
    const scene = await recoveryScene({ rig: { controller: { saveLimiter } } });
    await using rig = scene.rig;
    const { backend, uid, name } = scene;
    const refusal = rig.refuse('create', 'persistentvolumes');
    await rig.start();
    await rig.until('the failure', () => rig.unsavedLines >= 1);
    const syncs = rig.limiter.syncs(uid).length;
    rig.touchClaim();
    await rig.synced(uid, syncs + 1);
    assert.equal(backend.fulfils.length, 1);
    refusal.remove();
    await scene.passUntil('the volume', () => rig.volume(name));
    assert.equal(backend.fulfils.length, 1);
  });

  test('is not saved any more once another process works on its record', async () => {
    const scene = await recoveryScene({ rig: { controller: { saveLimiter: tenSeconds() } } });
    await using rig = scene.rig;
    const { backend, clock, journal, uid } = scene;
    const match = { resource: 'persistentvolumeclaims', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    rig.fault({ match, action: { type: 'watchStall' } });
    rig.fault({
      match: { verb: 'create', resource: 'persistentvolumes' },
      action: { type: 'status', code: 500 },
      times: 1,
    });
    rig.startOnly();
    await rig.until('the failure', () => rig.unsavedLines === 1);
    // the other process has saved the volume, and an administrator has kept its storage
    rig.deleteClaim();
    journal.records.delete(uid);
    journal.listener.onGone(uid);
    await clock.advance(60_000);
    assert.notEqual(rig.claimInCache('a'), undefined, 'the cache was kept behind');
    assert.deepEqual(rig.volumes, []);
    assert.equal(backend.fulfils.length, 1);
    assert.deepEqual(backend.deleted, []);
    assert.equal(backend.storage.size, 1);
  });

  test('of an earlier process is not saved before the claim is read live', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, name } = scene;
    backend.make(name);
    const match = { resource: 'persistentvolumeclaims', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    rig.fault({ match, action: { type: 'watchStall' } });
    rig.startOnly();
    await rig.until('the claim', () => rig.claimInCache('a'));
    // the earlier process has saved the volume, and an administrator has kept its storage
    const isRead = (): boolean =>
      rig.log.some(({ fields }) => String((fields as { err?: Error }).err).includes('the claim was deleted meanwhile'));
    rig.deleteClaim();
    await rig.until('the look', () => isRead() || rig.volumes.length > 0);
    assert.deepEqual(rig.volumes, []);
    assert.deepEqual(backend.deleted, []);
  });

  test('has the recorded name, whatever the provisioner calls it', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    scene.backend.fulfilSteps.push(() => Promise.resolve(madeVolume('x')));
    await rig.start();
    await rig.until('the volume', () => rig.volume(scene.name));
    assert.equal(scene.journal.records.size, 0);
  });
});

describe('a cache of claims that is behind', () => {
  for (const { title, live } of [
    { title: 'the claim is bound to it', live: { volumeName: true } },
    { title: 'the claim is gone', live: {} },
  ]) {
    test(`brings no second volume once the first was deleted: ${title}`, async () => {
      const scene = await recoveryScene();
      await using rig = scene.rig;
      const { backend, name, uid } = scene;
      const match = { resource: 'persistentvolumeclaims', watch: true };
      rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
      rig.fault({ match, action: { type: 'watchStall' } });
      rig.startOnly();
      await rig.until('the volume', () => rig.volume(name));
      await rig.synced(uid);
      if ('volumeName' in live) rig.changeClaim('a', {}, { volumeName: name });
      else rig.deleteClaim();
      rig.api.delete(resource.volumes, { name });
      rig.setFinalizers(name, []);
      await rig.until('the deletion', () => rig.volume(name) === undefined);
      await scene.clock.settle();
      rig.controller.wakeClaim(uid);
      await rig.synced(uid, 2);
      assert.notEqual(rig.claimInCache('a'), undefined, 'the cache was kept behind');
      assert.equal(backend.fulfils.length, 1);
      assert.equal(backend.plans.length, 1);
    });
  }

  test('does not hold the claim back once the volume of another process, which came into no cache, is gone', async () => {
    const saveLimiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 });
    const scene = await recoveryScene({ rig: { controller: { saveLimiter } } });
    await using rig = scene.rig;
    const { backend, clock, journal, name, uid } = scene;
    const match = { resource: 'persistentvolumes', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    const stalled = rig.fault({ match, action: { type: 'watchStall' } });
    const refusal = rig.refuse('create', 'persistentvolumes');
    rig.startOnly();
    await rig.until('the silent watch', () => stalled.hits > 0);
    await rig.until('the failure', () => rig.unsavedLines === 1);
    rig.addVolume(name, 'Available', { spec: { claimRef: leftRecord(uid).volume.claimRef } });
    journal.records.delete(uid);
    journal.listener.onGone(uid);
    await clock.advance(5000); // no pause of before is left
    rig.controller.wakeClaim(uid);
    const isStopped = (): boolean =>
      rig.log.some(({ fields }) => (fields as { reason?: string }).reason === `volume ${name} exists already`);
    await rig.until('the stop', isStopped);
    await clock.settle();
    assert.equal(backend.fulfils.length, 1);
    refusal.remove();
    rig.api.delete(resource.volumes, { name });
    await clock.advance(10_000);
    await rig.until('the volume', () => rig.volume(name));
    assert.equal(backend.fulfils.length, 2);
  });

  test('does not let revoke and claim chase each other', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, uid } = scene;
    let asked = 0;
    backend.shouldProvision = () => asked++ % 2 === 0; // the cache says no, the live look yes
    backend.fulfilSteps.push(lateAnswer(backend));
    rig.startOnly();
    await rig.until('the attempt', () => backend.fulfils.length === 1);
    await rig.synced(uid);
    rig.touchClaim();
    await rig.until('the live look', () => asked >= 3);
    for (let round = 0; round < 20; round++) await clock.settle();
    assert.ok(asked <= 4, `${asked} looks while no time passed`);
    assert.deepEqual(backend.revokes, [], 'CreateVolume might make the storage again');
    assert.deepEqual(backend.deleted, []);
  });
});

describe('volumes that are being revoked', () => {
  const hanging = (): { step: Exclude<RevokeStep, Error>; release: () => void; aborted: () => number } => {
    const gate = Promise.withResolvers<undefined>();
    let aborts = 0;
    const step: Exclude<RevokeStep, Error> = async (_plan, { signal }) => {
      const aborted = new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborts++;
          reject(unclear('aborted'));
        });
      });
      await Promise.race([gate.promise, aborted]);
    };
    return { step, release: () => gate.resolve(undefined), aborted: () => aborts };
  };

  test('never hold up claims, even when the backend hangs', async () => {
    const scene = await recoveryScene({ rig: { controller: { workers: 4 } } });
    await using rig = scene.rig;
    const { backend, journal } = scene;
    for (const name of ['b', 'c']) rig.addClaim(name, { finalizers: [] });
    backend.fulfilSteps.push(...Array.from({ length: 3 }, () => lateAnswer(backend)));
    const { step, release } = hanging();
    backend.otherwiseRevoke = step;
    await rig.start();
    for (const name of ['a', 'b', 'c']) rig.deleteClaim(name);
    await scene.passUntil('both workers to hang', () => backend.revokes.length === 2);
    for (let number = 0; number < 5; number++) rig.addClaim(`new${number}`);
    await rig.until('the volumes of five claims', () => rig.volumes.length === 5);
    await rig.until('their records to be closed', () => journal.records.size === 3);
    release();
    await scene.passUntil('the end', () => journal.records.size === 0);
  });

  for (const [workers, atATime] of [
    [1, 1],
    [20, 10],
  ] as const) {
    test(`take ${atATime} at a time where ${workers} claims are worked on`, async () => {
      const scene = await recoveryScene({ rig: { controller: { workers } } });
      await using rig = scene.rig;
      const { backend, journal } = scene;
      const names = ['a', ...Array.from({ length: 11 }, (_, number) => `b${number}`)];
      for (const name of names.slice(1)) rig.addClaim(name, { finalizers: [] });
      backend.otherwiseFulfil = lateAnswer(backend);
      const { step, release } = hanging();
      backend.otherwiseRevoke = step;
      await rig.start();
      await rig.until('the attempts', () => backend.storage.size === names.length);
      for (const name of names) rig.deleteClaim(name);
      await scene.passUntil('the workers to hang', () => backend.revokes.length === atATime);
      await rig.settle();
      assert.equal(backend.revokes.length, atATime);
      release();
      await scene.passUntil('the end', () => journal.records.size === 0);
    });
  }

  describe('whose proof is followed by a wait for their turn', () => {
    /** The revoke of claim `ns/a` has its proof, and waits for that of `ns/b`, which hangs. */
    async function waiting() {
      const scene = await recoveryScene({ rig: { controller: { workers: 2 } } }); // one revoke at a time
      const { rig, backend, journal, name, uid } = scene;
      rig.addClaim('b', { finalizers: [] });
      backend.otherwiseFulfil = lateAnswer(backend);
      const { step: hang, release } = hanging();
      const mayProve = Promise.withResolvers<undefined>();
      backend.otherwiseRevoke = async (plan, context) => {
        if (plan.name !== name) return hang(plan, context);
        await mayProve.promise;
        return backend.undo(plan, context);
      };
      await rig.start();
      await rig.until('the attempts', () => backend.storage.size === 2);
      rig.deleteClaim('a');
      await rig.until('the wait', () => journal.records.get(uid)?.phase === 'revoke');
      await scene.passUntil('the first revoke', () => backend.revokes.length === 1);
      rig.deleteClaim('b');
      await scene.pass(lateMs);
      assert.deepEqual(
        backend.revokes.map(({ plan }) => plan.name),
        [name],
      );
      mayProve.resolve(undefined);
      await rig.until('the second one to hang', () => backend.revokes.length === 2);
      await rig.until('the proof', () => journal.records.get(uid)?.phase === 'delete');
      await rig.settle();
      return { ...scene, release };
    }
    const liveReads = (rig: Rig, name: string) =>
      rig.wire.requests.filter(({ path }) => decodeURIComponent(path).includes(`metadata.name=${name}`)).length;

    test('prove it again: storage that was imported meanwhile is kept', async () => {
      const { rig: it, release, backend, journal, uid, handle, name } = await waiting();
      await using rig = it;
      rig.addVolume('by-hand', 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: handle } } });
      await rig.settle();
      release();
      await rig.until('the record to be closed', () => !journal.records.has(uid));
      assert.ok(backend.storage.has(name));
      assert.ok(!backend.deleted.includes(handle));
      const says = 'The storage is not deleted: a PersistentVolume refers to it';
      assert.ok(rig.log.some(({ message }) => message === says));
    });

    for (const { waitMs, reads, title } of [
      { waitMs: 5000, reads: 1, title: 'read what it needs once where the wait takes five seconds' },
      { waitMs: 5001, reads: 2, title: 'read what it needs again where the wait takes longer than five seconds' },
    ]) {
      test(title, async () => {
        const { rig: it, release, backend, clock, handle, name } = await waiting();
        await using rig = it;
        await clock.advance(waitMs);
        release();
        await rig.until('the deletion', () => backend.deleted.includes(handle));
        assert.equal(liveReads(rig, name), reads);
      });
    }
  });

  test('are finished when the run is stopped', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    const { step, release, aborted } = hanging();
    backend.otherwiseRevoke = step;
    await rig.start();
    rig.deleteClaim();
    await scene.passUntil('the revoke', () => backend.revokes.length === 1);
    rig.beginStop();
    await scene.clock.settle();
    assert.equal(journal.flushed, false);
    release();
    await rig.stop();
    assert.equal(aborted(), 0);
    assert.equal(journal.records.size, 0);
    assert.equal(journal.flushed, true);
  });

  test('stay recorded when the run is aborted', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    const { step, aborted } = hanging();
    backend.otherwiseRevoke = step;
    await rig.start();
    rig.deleteClaim();
    await scene.passUntil('the revoke', () => backend.revokes.length === 1);
    rig.abort();
    await rig.stop();
    assert.equal(aborted(), 1);
    assert.equal(journal.records.size, 1);
    assert.deepEqual(backend.deleted, []);
  });

  test('leave no timer behind when the run has ended', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    rig.deleteClaim();
    await scene.undone();
    await rig.stop();
    await clock.settle();
    assert.equal(clock.pending, 0);
  });

  test('are tried again soon when the backend is back', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    backend.revokeSteps.push(...Array.from({ length: 6 }, () => final('away')));
    await rig.start();
    rig.deleteClaim();
    await scene.passUntil('six tries', () => backend.revokes.length === 6);
    rig.controller.retryFailed();
    await clock.advance(1000);
    await rig.until('the deletion', () => backend.deleted.length === 1);
    assert.equal(backend.revokes.length, 7);
  });
});

test('a volume that is saved while the run ends leaves no record behind', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, name } = scene;
  const gate = Promise.withResolvers<undefined>();
  backend.fulfilSteps.push(async (plan) => {
    await gate.promise;
    return backend.make(plan.name);
  });
  rig.startOnly();
  await rig.until('the attempt', () => backend.fulfils.length === 1);
  rig.beginStop();
  await scene.clock.settle();
  gate.resolve(undefined);
  await rig.stop();
  assert.notEqual(rig.volume(name), undefined);
  assert.equal(journal.records.size, 0);
});

describe('when the run is aborted, a volume that is not saved', () => {
  for (const { title, code, isLate } of [
    { title: 'is recorded with how long the API server may still save it', code: 500, isLate: true },
    { title: 'is not, where the API server has rejected it', code: 422, isLate: false },
  ]) {
    test(title, async () => {
      const limiter = new ExponentialLimiter({ baseMs: 10_000, maxMs: 10_000 });
      const scene = await recoveryScene({ rig: { controller: { saveLimiter: limiter } } });
      await using rig = scene.rig;
      const { journal, uid } = scene;
      rig.refuse('create', 'persistentvolumes', { code });
      rig.startOnly();
      await rig.until('the response', () => rig.unsavedLines > 0);
      rig.abort();
      await rig.stop();
      assert.equal(journal.records.get(uid)?.phase, 'create');
      assert.equal(journal.records.get(uid)?.quietInMs, isLate ? 65_000 : undefined);
      assert.equal(journal.flushed, isLate);
    });
  }

  test('is recorded in the same way while its request is in progress', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const hanging = rig.fault({
      match: { verb: 'create', resource: 'persistentvolumes' },
      action: { type: 'delay', ms: 3_600_000 },
    });
    rig.startOnly();
    await rig.until('the request', () => hanging.hits > 0);
    rig.abort();
    await rig.stop();
    assert.equal(scene.journal.records.get(scene.uid)?.quietInMs, 65_000);
    assert.equal(scene.journal.flushed, true);
  });
});

test('of closed records nothing is kept', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, seen } = scene;
  await rig.start();
  const records: WeakRef<object>[] = [];
  for (let number = 0; number < 20; number++) {
    backend.fulfilSteps.push(number % 2 === 0 ? lateAnswer(backend) : final());
    const before = backend.fulfils.length;
    rig.addClaim(`c${number}`, { finalizers: [] });
    await rig.until('the attempt', () => backend.fulfils.length > before);
    for (const record of journal.given.splice(0)) records.push(record);
    rig.deleteClaim(`c${number}`);
    await scene.passUntil('the end', () => journal.records.size === 0);
  }
  await rig.settle();
  assert.deepEqual([...rig.controller.openPlans()], []);
  assert.deepEqual(seen.open, noRecords());
  assert.ok(records.length >= 20);
  await rig.until('the records to be collected', () => {
    globalThis.gc?.();
    return globalThis.gc === undefined || records.filter((each) => each.deref() !== undefined).length <= 1;
  });
});
