/** What becomes of storage in progress when its claim changes its mind. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { noRecords } from '../../../src/provision/intent-journal/intent-journal.ts';
import { annotation, resource } from './rig.ts';
import { recoveryScene } from './recovery-scene.ts';
import { final, lateAnswer, neverSent, noRoom, undecidable, unclear } from './scripted-backend.ts';

const shortPauses = (): ExponentialLimiter => new ExponentialLimiter({ baseMs: 5, maxMs: 1000 });

describe('a claim of a recoverable provisioner', () => {
  test('is recorded before the backend is asked, and no longer once its volume is saved', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, uid, name } = scene;
    const recorded: unknown[] = [];
    backend.fulfilSteps.push((plan) => {
      recorded.push(...journal.records.values());
      return Promise.resolve(backend.make(plan.name));
    });
    await rig.start();
    await rig.stop();
    assert.equal(recorded.length, 1);
    assert.deepEqual(journal.writes, ['put create', 'remove']);
    assert.equal(journal.flushed, true);
    assert.deepEqual([...rig.controller.openPlans()], []);
    const [volume] = rig.volumes;
    assert.equal(volume?.metadata.name, name);
    assert.equal(volume.spec.claimRef?.uid, uid);
    assert.deepEqual(volume.metadata.annotations, { [annotation.provisionedBy]: 'drv' });
    assert.deepEqual(backend.fulfils, [{ plan: backend.plans[0], mayExist: false }]);
    assert.deepEqual(scene.seen.open, noRecords());
    assert.equal(scene.seen.oldestMs(), Infinity);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  test('waits for the record, with an event after 30 s', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, journal } = scene;
    const written = Promise.withResolvers<undefined>();
    journal.onPut = () => written.promise;
    rig.startOnly();
    await rig.until('the plan', () => backend.plans.length === 1);
    await clock.advance(29_999);
    assert.deepEqual(backend.fulfils, []);
    assert.equal(rig.reasons.includes('ProvisioningWaiting'), false);
    await clock.advance(1);
    await rig.until('the event', () => rig.reasons.includes('ProvisioningWaiting'));
    written.resolve(undefined);
    await rig.until('the volume', () => rig.volumes.length === 1);
  });

  test('that is deleted while it waits for the record is never asked for', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal } = scene;
    const written = Promise.withResolvers<undefined>();
    journal.onPut = () => written.promise;
    rig.startOnly();
    await rig.until('the plan', () => backend.plans.length === 1);
    rig.deleteClaim();
    await rig.until('the deletion', () => rig.claimInCache('a') === undefined);
    written.resolve(undefined);
    await rig.settle();
    await scene.closed();
    assert.deepEqual(backend.fulfils, []);
    assert.deepEqual(backend.revokes, []);
  });

  test('whose record is refused leaves nothing behind, and is planned anew', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, passPause } = scene;
    journal.onPut = () => Promise.reject(new Error('no record'));
    await rig.start();
    assert.deepEqual(backend.fulfils, []);
    assert.equal(journal.records.size, 0);
    assert.deepEqual([...rig.controller.openPlans()], []);
    journal.onPut = () => Promise.resolve();
    await passPause();
    assert.equal(backend.plans.length, 2);
    assert.equal(rig.volumes.length, 1);
  });

  test('whose attempt was never sent is closed without any call when it is deleted', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, passPause, journal } = scene;
    backend.otherwiseFulfil = neverSent();
    await rig.start();
    await passPause();
    assert.equal(backend.plans.length, 2, 'planned anew each time');
    rig.deleteClaim();
    await rig.settle();
    await rig.stop();
    assert.equal(journal.records.size, 0);
    assert.deepEqual(backend.revokes, []);
  });
});

describe('a claim that is deleted while its volume may be in progress', () => {
  test('gets no PersistentVolume, and the storage is deleted', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, seen, handle, journal } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    assert.equal(backend.storage.size, 1);
    assert.deepEqual(seen.open, { ...noRecords(), unclear: 1 });
    rig.deleteClaim();
    await scene.undone();
    await rig.settle();
    await rig.stop();
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal(backend.storage.size, 0);
    assert.deepEqual(rig.volumes, []);
    assert.deepEqual(rig.writes, []);
    assert.equal(backend.fulfils.length, 1, 'the way to undo is revoke, not another attempt');
    assert.deepEqual(backend.revokes, [{ plan: backend.plans[0], handle: undefined }]);
    assert.equal(backend.released.length, 1);
    assert.deepEqual(journal.writes, ['put create', 'put revoke', 'put unclear', 'put delete', 'remove']);
    assert.equal(seen.revoked, 1);
  });

  for (const { title, earlier, namesStorage = true, isLate = false, calls } of [
    { title: 'is deleted once, by the handle that came back', calls: ['handle'] },
    {
      title: 'is looked for, and deleted once, where the provisioner has not named it',
      namesStorage: false,
      calls: ['look'],
    },
    {
      title: 'is deleted once when an earlier call that had no clear result can no longer run',
      earlier: unclear(),
      isLate: true,
      calls: ['handle'],
    },
    {
      title: 'is deleted once after an earlier call that was never sent',
      earlier: neverSent(),
      calls: ['handle'],
    },
    {
      title: 'is deleted once after an earlier call that certainly made nothing',
      earlier: final(),
      calls: ['handle'],
    },
  ]) {
    test(`gets no PersistentVolume when the backend answers after the deletion was seen, and the storage ${title}`, async () => {
      const scene = await recoveryScene();
      await using rig = scene.rig;
      const { backend, handle, clock, journal, uid } = scene;
      backend.namesStorage = namesStorage;
      if (earlier !== undefined) {
        backend.fulfilSteps.push(earlier);
        await rig.start();
      }
      const before = backend.fulfils.length;
      const answer = Promise.withResolvers<undefined>();
      backend.fulfilSteps.push(async ({ name, parameters }) => {
        await answer.promise;
        return backend.make(name, parameters);
      });
      if (earlier === undefined) rig.startOnly();
      else await clock.advance(rig.limiter.delays(uid).at(-1) ?? NaN);
      await rig.until('the call', () => backend.fulfils.length === before + 1);
      rig.deleteClaim();
      await rig.until('the cache without the claim', () => rig.claimInCache('a') === undefined);
      answer.resolve(undefined);
      if (isLate) await scene.undone();
      else await scene.closed(); // no time passes
      assert.deepEqual(backend.deleted, [handle]);
      assert.deepEqual(
        backend.revokes.map((call) => (call.handle === undefined ? 'look' : 'handle')),
        calls,
      );
      assert.equal(journal.writes.includes('put revoke'), isLate);
      assert.equal(scene.seen.revoked, 1);
      const saves = rig.wire.requests.filter(
        ({ method, path }) => method === 'POST' && path.includes('/persistentvolumes'),
      );
      assert.deepEqual(saves, []);
    });
  }

  test('has its storage deleted by its handle where the volume could not be listed at first', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, handle } = scene;
    backend.fulfilSteps.push(async ({ name, parameters }) => {
      rig.deleteClaim();
      await rig.until('the cache without the claim', () => rig.claimInCache('a') === undefined);
      return backend.make(name, parameters);
    });
    backend.namesStorage = false;
    const refusal = rig.refuse('list', 'persistentvolumes');
    rig.startOnly();
    await rig.until('the first attempt', () => refusal.hits === 1);
    await rig.settle();
    refusal.remove();
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(
      backend.revokes.map((call) => call.handle),
      [undefined, handle],
    );
  });

  test('after an administrator has kept its first volume has nothing deleted, as a second call may have found that', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, name, uid, handle } = scene;
    await rig.start();
    await rig.until('the volume', () => rig.volume(name) !== undefined && journal.records.size === 0);
    rig.api.delete(resource.volumes, { name });
    rig.setFinalizers(name, []);
    await rig.settle();
    backend.fulfilSteps.push(lateAnswer(backend));
    rig.controller.wakeClaim(uid);
    await rig.until('the second call', () => backend.fulfils.length === 2);
    rig.deleteClaim();
    await scene.undone();
    assert.deepEqual(backend.deleted, []);
    assert.equal(backend.storage.get(name)?.handle, handle);
  });

  test('gets none either when its volume waits to be saved in the background', async () => {
    const scene = await recoveryScene({ rig: { controller: { saveLimiter: shortPauses() } } });
    await using rig = scene.rig;
    const { backend, handle, clock } = scene;
    const refusal = rig.refuse('create', 'persistentvolumes');
    await rig.start();
    await rig.until('the second try to fail', () => rig.unsavedLines >= 2);
    assert.equal(scene.journal.records.size, 1);
    rig.deleteClaim();
    await rig.until('the cache without the claim', () => rig.claimInCache('a') === undefined);
    await clock.advance(60_000);
    await rig.settle();
    assert.deepEqual(backend.deleted, [], 'the API server may still carry out the last request');
    refusal.remove();
    await clock.advance(5000);
    await scene.closed();
    await rig.stop();
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(rig.volumes, []);
  });

  test('keeps its volume when that was saved just before the storage would be deleted', async () => {
    const scene = await recoveryScene({ rig: { controller: { saveLimiter: shortPauses() } } });
    await using rig = scene.rig;
    const { backend, closed, clock, name } = scene;
    rig.refuse('create', 'persistentvolumes', { times: 2 });
    rig.fault({
      match: { verb: 'create', resource: 'persistentvolumes' },
      action: { type: 'delay', ms: 200 },
      times: 1,
    });
    await rig.start();
    await rig.until('the second try to fail', () => rig.unsavedLines >= 2);
    await clock.advance(5);
    await rig.until('the third try', () => rig.writes.length === 3);
    rig.deleteClaim();
    await closed();
    await rig.stop();
    assert.deepEqual(backend.revokes, []);
    assert.deepEqual(
      rig.volumes.map(({ metadata }) => metadata.name),
      [name],
    );
  });

  test('after a final failure that followed an unclear one', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, handle, passPause, journal } = scene;
    backend.fulfilSteps.push(lateAnswer(backend), final());
    await rig.start();
    await passPause();
    assert.equal(backend.fulfils.at(-1)?.mayExist, true);
    assert.equal(journal.records.size, 1, 'the first attempt may have left a volume');
    rig.deleteClaim();
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
  });

  test('after a first failure that is final has nothing to be undone', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal } = scene;
    backend.otherwiseFulfil = final();
    await rig.start();
    assert.equal(journal.records.size, 0);
    rig.deleteClaim();
    await rig.settle();
    await rig.stop();
    assert.deepEqual(backend.revokes, []);
  });

  test('is undone, too, after it was given up', async () => {
    const limiter = new ExponentialLimiter({ baseMs: 1, maxMs: 1 });
    const scene = await recoveryScene({ rig: { limiter, controller: { failedProvisionThreshold: 2 } } });
    await using rig = scene.rig;
    const { backend, handle } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    backend.otherwiseFulfil = unclear();
    rig.startOnly();
    await scene.passUntil('giving up', () => rig.log.some(({ message }) => message.includes('giving up')));
    assert.equal(scene.journal.records.size, 1);
    rig.deleteClaim();
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
  });

  test('is undone, too, when it is deleted during the attempt after which it is given up', async () => {
    const scene = await recoveryScene({ rig: { controller: { failedProvisionThreshold: 1 } } });
    await using rig = scene.rig;
    const { backend, handle, passPause } = scene;
    backend.fulfilSteps.push(neverSent());
    const attempt = Promise.withResolvers<never>();
    backend.otherwiseFulfil = ({ name }) => {
      backend.make(name);
      return attempt.promise;
    };
    await rig.start();
    const passed = passPause();
    passed.catch(() => undefined);
    await rig.until('the second attempt', () => backend.fulfils.length === 2);
    rig.deleteClaim();
    await rig.until('the deletion', () => rig.claimInCache('a') === undefined);
    attempt.reject(unclear());
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
  });
});

describe('a claim that does not want its volume any more', () => {
  for (const { title, change } of [
    { title: 'as it was bound to another one', change: { spec: { volumeName: 'other' } } },
    {
      title: 'as it was handed to another provisioner',
      change: { metadata: { annotations: { [annotation.provisioner]: 'other' } } },
    },
  ] as { title: string; change: { spec?: object; metadata?: object } }[]) {
    test(`${title}, leaves no storage`, async () => {
      const scene = await recoveryScene();
      await using rig = scene.rig;
      const { backend, handle } = scene;
      backend.fulfilSteps.push(lateAnswer(backend));
      await rig.start();
      rig.changeClaim('a', change.metadata ?? {}, change.spec);
      await scene.undone();
      await rig.settle();
      assert.deepEqual(backend.deleted, [handle]);
      assert.deepEqual(rig.volumes, []);
      assert.equal(backend.plans.length, 1);
    });
  }

  for (const { title, isLate, plans } of [
    { title: 'gets it at once, as it was planned, while a late call may make it', isLate: false, plans: 1 },
    {
      title: 'gets another one, planned anew, once no late call can make the former one again',
      isLate: true,
      plans: 2,
    },
  ]) {
    test(`as another node was selected, and then the former one, ${title}`, async () => {
      const scene = await recoveryScene({ class: { parameters: { of: 'before' } } });
      await using rig = scene.rig;
      const { backend, handle, journal, seen } = scene;
      let isOurs = true;
      backend.shouldProvision = () => isOurs;
      backend.fulfilSteps.push(lateAnswer(backend));
      await rig.start();
      isOurs = false;
      rig.touchClaim();
      if (isLate) await scene.undone();
      else await rig.until('the wait', () => seen.waiting().get('earlier-call') === 1);
      assert.deepEqual(backend.deleted, isLate ? [handle] : []);
      isOurs = true;
      rig.touchClaim();
      await rig.until('another volume', () => rig.volumes.length === 1);
      assert.equal(backend.plans.length, plans);
      assert.equal(rig.volumes[0]?.spec.csi?.volumeHandle, isLate ? `${handle}-2` : handle);
      await scene.passUntil('the record to be closed', () => journal.records.size === 0);
      assert.equal(backend.storage.size, 1, 'nothing of it is deleted any more');
    });
  }

  test('is served if it wants the volume after all', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, name, seen } = scene;
    let asked = 0;
    backend.shouldProvision = () => ++asked !== 2; // the look from the cache says no
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    rig.touchClaim();
    await rig.until('the live look', () => asked >= 3);
    await clock.advance(1000);
    await rig.until('the volume', () => rig.volume(name));
    assert.deepEqual(backend.deleted, []);
    assert.equal(seen.revoked, 0);
  });
});

test('what a volume is made from counts as in use until its storage is known, which is found out at once, claim or no claim', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, passPause, uid } = scene;
  backend.hasSource = true;
  const inUse = (): unknown[] => [...rig.controller.openPlans()];
  backend.fulfilSteps.push(lateAnswer(backend), final());
  backend.revokeSteps.push(unclear('busy'));
  await rig.start();
  assert.deepEqual(inUse(), backend.plans);
  await passPause();
  assert.deepEqual(inUse(), backend.plans);
  rig.deleteClaim();
  await rig.until('a try to undo it', () => backend.revokes.length === 1);
  assert.deepEqual(inUse(), backend.plans);
  await scene.passUntil('the storage to be known', () => inUse().length === 0);
  assert.deepEqual([backend.revokes.length, backend.released], [2, backend.plans]);
  const { phase, handle } = journal.records.get(uid) ?? {};
  assert.deepEqual([phase, handle], ['revoke', scene.handle], 'recorded before what is held is released');
  assert.deepEqual(backend.deleted, []);
  await scene.undone();
  assert.deepEqual(backend.deleted, [scene.handle]);
});

test('a node that goes while a volume may be in progress has no say: nothing is planned anew', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, passPause, name } = scene;
  const annotations = { [annotation.provisioner]: 'drv', [annotation.node]: 'n1' };
  rig.changeClaim('a', { annotations });
  backend.fulfilSteps.push(unclear());
  await rig.start();
  backend.planSteps.push(noRoom());
  await passPause();
  await rig.until('the volume', () => rig.volume(name));
  assert.equal(rig.claim()?.metadata.annotations?.[annotation.node], 'n1');
  assert.equal(backend.planSteps.length, 1);
});

describe('no room', () => {
  const node = { [annotation.provisioner]: 'drv', [annotation.node]: 'n1' };

  test('is believed when it is the first answer, and another node is selected', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    rig.changeClaim('a', { annotations: node });
    scene.backend.fulfilSteps.push(noRoom());
    scene.backend.otherwiseFulfil = unclear();
    await rig.start();
    await rig.until('the node to be removed', () => rig.claim()?.metadata.annotations?.[annotation.node] === undefined);
    assert.ok(scene.journal.writes.includes('remove'));
  });

  test('after an unclear attempt is believed the second time, once no late call can be under way', async () => {
    const limiter = new ExponentialLimiter({ baseMs: 25_000, maxMs: 25_000 });
    const scene = await recoveryScene({ rig: { limiter }, class: { volumeBindingMode: 'WaitForFirstConsumer' } });
    await using rig = scene.rig;
    const { backend, passPause, journal } = scene;
    rig.changeClaim('a', { annotations: node });
    backend.fulfilSteps.push(unclear());
    backend.otherwiseFulfil = noRoom();
    await rig.start();
    for (const _early of [25_000, 50_000, 75_000]) await passPause();
    assert.equal(journal.records.size, 1);
    await passPause(); // the first at 100 s, late enough
    assert.equal(journal.records.size, 1, 'once is not enough');
    assert.equal(rig.claim()?.metadata.annotations?.[annotation.node], 'n1', 'no other node may get it yet');
    await passPause();
    assert.equal(journal.writes.at(-1), 'remove');
    assert.equal(rig.claim()?.metadata.annotations?.[annotation.node], undefined);
    assert.equal(backend.fulfils.length, 6);
  });

  test('is asked for anew after another unclear attempt', async () => {
    const scene = await recoveryScene({
      rig: { limiter: new ExponentialLimiter({ baseMs: 100_000, maxMs: 100_000 }) },
    });
    await using rig = scene.rig;
    const { backend, passPause, journal } = scene;
    backend.fulfilSteps.push(unclear(), noRoom(), unclear(), noRoom(), noRoom());
    await rig.start();
    for (const _attempt of [2, 3, 4]) {
      await passPause();
      assert.equal(journal.records.size, 1);
    }
    await passPause();
    assert.equal(journal.records.size, 0);
  });
});

describe('what cannot be found out', () => {
  test('is reported once, and tried as often as the claim is', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, passPause, seen, journal } = scene;
    backend.fulfilSteps.push(unclear());
    backend.otherwiseFulfil = undecidable();
    await rig.start();
    await passPause();
    await passPause();
    await rig.stop();
    assert.deepEqual(seen.open, { ...noRecords(), stuck: 1 });
    assert.deepEqual(seen.reported, ['undecidable']);
    assert.equal(rig.log.filter(({ message }) => message.includes('needs an operator')).length, 1);
    const [record] = journal.records.values();
    assert.equal(record?.phase, 'stuck');
    assert.equal(record.problem, 'other arguments');
    assert.equal(rig.events.filter(({ message }) => message.startsWith('An earlier attempt may have left')).length, 1);
  });

  test('of a claim that is gone is tried rarely, and nothing is deleted', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, seen, closed } = scene;
    backend.fulfilSteps.push(unclear());
    backend.revokeSteps.push(undecidable(), undecidable());
    await rig.start();
    rig.deleteClaim();
    await scene.passUntil('the record to be stuck', () => seen.open.stuck === 1);
    await clock.advance(299_000 - 1);
    assert.equal(backend.revokes.length, 1);
    await clock.advance(1001);
    await rig.until('another try', () => backend.revokes.length === 2);
    assert.deepEqual(seen.reported, ['undecidable']);
    assert.deepEqual(backend.deleted, []);
    await clock.advance(300_000);
    await closed();
    assert.equal(seen.open.stuck, 0);
  });

  test('at the first answer is an ordinary failure', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    scene.backend.otherwiseFulfil = undecidable();
    await rig.start();
    assert.equal(scene.journal.records.size, 0);
    assert.deepEqual(scene.seen.reported, []);
  });
});

describe('a class that changes while a volume may be in progress', () => {
  test('is not looked at when it is deleted, and the volume is what was recorded', async () => {
    const scene = await recoveryScene({ class: { parameters: { of: 'before' }, mountOptions: ['ro'] } });
    await using rig = scene.rig;
    const { backend, passPause, name } = scene;
    backend.fulfilSteps.push(unclear());
    await rig.start();
    rig.api.delete(resource.classes, { name: 'c1' });
    await rig.until('the cache', () => rig.classInCache('c1') === undefined);
    await passPause();
    const volume = await rig.until('the volume', () => rig.volume(name));
    assert.deepEqual(backend.fulfils.at(-1), { plan: backend.plans[0], mayExist: true });
    assert.deepEqual(volume.spec.mountOptions, ['ro']);
    assert.equal(volume.spec.storageClassName, 'c1');
    assert.equal(volume.spec.persistentVolumeReclaimPolicy, 'Delete');
    await rig.stop();
    assert.deepEqual(
      rig.events.map(({ reason, message }) => [reason, message]),
      [
        ['ProvisioningFailed', 'no answer'],
        ['Provisioning', 'External provisioner is provisioning volume for claim "ns/a"'],
        ['ProvisioningSucceeded', `Successfully provisioned volume ${name}`],
      ],
    );
  });

  test('is not looked at either when it is recreated with other parameters', async () => {
    const scene = await recoveryScene({ class: { parameters: { of: 'before' } } });
    await using rig = scene.rig;
    const { backend, passPause, name } = scene;
    backend.fulfilSteps.push(unclear());
    await rig.start();
    await rig.recreateClass('c1', { parameters: { of: 'after' } });
    await passPause();
    await rig.until('the volume', () => rig.volume(name));
    assert.deepEqual(backend.storage.get(name)?.parameters, { of: 'before' });
    assert.equal(backend.plans.length, 1);
  });

  test('gives the volume the policy Retain when it is recreated with it', async () => {
    const scene = await recoveryScene({ class: { reclaimPolicy: 'Delete' } });
    await using rig = scene.rig;
    const { backend, passPause, name } = scene;
    backend.fulfilSteps.push(unclear());
    await rig.start();
    await rig.recreateClass('c1', { reclaimPolicy: 'Retain' });
    await passPause();
    const volume = await rig.until('the volume', () => rig.volume(name));
    assert.equal(volume.spec.persistentVolumeReclaimPolicy, 'Retain');
  });

  test('does not keep the storage of a claim that is deleted after it', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, handle } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    rig.api.delete(resource.classes, { name: 'c1' });
    await rig.until('the cache', () => rig.classInCache('c1') === undefined);
    rig.deleteClaim();
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
  });
});
