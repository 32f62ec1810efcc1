/** Nothing that anybody may use is deleted: the looks before the storage of an unwanted volume goes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { untilAborted } from '../../../src/base/abort.ts';
import type { FoundIntent } from '../../../src/provision/intent-journal/intent-journal.ts';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { ProvisionError } from '../../../src/provision/provisioner.ts';
import { resource, type Rig } from './rig.ts';
import { leftRecord, maxCallMs, type RecoveryScene, recoveryScene } from './recovery-scene.ts';
import { type FulfilStep, lateAnswer, type ScriptedBackend, unclear } from './scripted-backend.ts';

/** The lists of all volumes that were read live. */
const liveLists = (rig: Rig): string[] => readsOf(rig, /\/persistentvolumes\?limit=\d+$/);
/** The live looks for a volume of one name. */
const namedLists = (rig: Rig): string[] => readsOf(rig, /\/persistentvolumes\?fieldSelector=metadata\.name/);
/** The watches of what happened to volumes. */
const historyReads = (rig: Rig): string[] => readsOf(rig, /\/persistentvolumes\?.*watch=true.*timeoutSeconds=\d$/);

function readsOf(rig: Rig, wanted: RegExp): string[] {
  return rig.wire.requests.filter(({ method, path }) => method === 'GET' && wanted.test(path)).map(({ path }) => path);
}

/** Waits until the record is only reported, and for longer than anything takes then. */
async function unproved({ journal, clock, rig, uid, passUntil }: RecoveryScene): Promise<void> {
  await passUntil('the report', () => journal.records.get(uid)?.reason === 'unproved');
  await clock.advance(20 * maxCallMs);
  await rig.settle();
}

/** The claim was deleted while its volume may be in progress, and is about to be undone. */
async function unwanted(prepare: (scene: RecoveryScene) => void = () => undefined): Promise<RecoveryScene> {
  const scene = await recoveryScene();
  scene.backend.fulfilSteps.push(lateAnswer(scene.backend));
  await scene.rig.start();
  prepare(scene);
  scene.rig.deleteClaim();
  return scene;
}

describe('storage that a PersistentVolume holds is not deleted', () => {
  for (const { title, spec } of [
    {
      title: 'of another name and another provisioner',
      spec: (handle: string) => ({ csi: { driver: 'drv', volumeHandle: handle } }),
    },
    {
      title: 'of an in-tree plugin',
      spec: (handle: string) => ({ gcePersistentDisk: { pdName: handle }, csi: undefined }),
    },
  ]) {
    for (const when of ['before', 'after']) {
      test(`${title} that came ${when} the record was begun, and the record is closed`, async () => {
        const scene = await recoveryScene();
        await using rig = scene.rig;
        const { backend, clock, handle } = scene;
        const importStorage = () => rig.addVolume('by-hand', 'Bound', { annotations: {}, spec: spec(handle) });
        if (when === 'before') importStorage();
        backend.fulfilSteps.push(lateAnswer(backend));
        await rig.start();
        if (when === 'after') importStorage();
        rig.deleteClaim();
        await scene.undone();
        await clock.advance(20 * maxCallMs);
        assert.deepEqual(backend.deleted, []);
        assert.equal(backend.storage.size, 1);
        assert.equal(scene.seen.revoked, 0);
        assert.ok(
          rig.log.some(({ message }) => message === 'The storage is not deleted: a PersistentVolume refers to it'),
        );
      });
    }

    test(`${title} that came after the record was begun, and is gone again: it may be kept`, async () => {
      const scene = await unwanted(({ rig, handle }) => {
        rig.addVolume('by-hand', 'Bound', { annotations: {}, spec: spec(handle) });
        rig.api.delete(resource.volumes, { name: 'by-hand' });
      });
      await using rig = scene.rig;
      await unproved(scene);
      await scene.clock.advance(20 * maxCallMs);
      await rig.settle();
      assert.deepEqual(scene.backend.deleted, []);
      assert.deepEqual(scene.seen.reported, ['unproved']);
      assert.ok(!scene.journal.writes.includes('put delete'), 'no deletion is recorded either');
    });
  }

  for (const { what, times, isReported } of [
    { what: 'is behind', times: 1, isReported: true },
    { what: 'is behind, and no other watch gets on', times: Infinity, isReported: false },
  ]) {
    test(`when the cache of volumes ${what}`, async () => {
      const scene = await recoveryScene();
      await using rig = scene.rig;
      const { backend, clock, handle, seen } = scene;
      const match = { resource: 'persistentvolumes', watch: true };
      rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
      rig.fault({ match, action: { type: 'watchStall' }, times });
      backend.fulfilSteps.push(lateAnswer(backend));
      rig.startOnly();
      await rig.until('the attempt', () => backend.fulfils.length === 1);
      rig.addVolume('by-hand', 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: handle } } });
      rig.deleteClaim();
      if (isReported) await scene.passUntil('the report', () => seen.reported.length > 0);
      else await scene.passUntil('a history that stalls', () => historyReads(rig).length > 0);
      await clock.advance(5 * 60_000);
      assert.deepEqual(backend.deleted, []);
      assert.deepEqual(seen.reported, isReported ? ['unproved'] : []);
    });
  }

  test('when it has only the name', async () => {
    const scene = await unwanted(({ rig, name }) => {
      rig.addVolume(name, 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: 'other' } } });
    });
    await using rig = scene.rig;
    await unproved(scene);
    rig.api.delete(resource.volumes, { name: scene.name });
    await scene.clock.advance(20 * maxCallMs);
    assert.deepEqual(scene.backend.deleted, []);
    assert.deepEqual(scene.seen.reported, ['unproved']);
  });

  test('when it has only the name, and had it before the record was begun: then somebody has to look', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, seen, name, uid, journal } = scene;
    const spec = { csi: { driver: 'drv', volumeHandle: 'other' } };
    rig.addVolume(name, 'Bound', { annotations: {}, spec });
    const since = rig.addClass('later').metadata.resourceVersion ?? '';
    journal.leave({ record: leftRecord(uid, { since }), owner: 'own' });
    rig.deleteClaim();
    await rig.start();
    await scene.passUntil('the report', () => seen.reported.length === 1);
    const attempts = backend.revokes.length;
    await scene.passUntil('another attempt', () => backend.revokes.length > attempts);
    assert.equal(journal.records.get(uid)?.phase, 'stuck');
    rig.api.delete(resource.volumes, { name });
    await unproved(scene);
    assert.deepEqual(backend.deleted, []);
    assert.deepEqual(seen.reported, ['undecidable', 'unproved']);
  });

  test('as long as the volumes cannot be listed', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, handle } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    const refusal = rig.refuse('list', 'persistentvolumes');
    rig.deleteClaim();
    await scene.passUntil('the list to be refused', () => refusal.hits > 0);
    await clock.advance(0);
    assert.deepEqual(backend.deleted, []);
    refusal.remove();
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
    await scene.undone();
  });

  const claimReads = { verb: 'get', resource: 'persistentvolumeclaims' };
  for (const [what, refuse] of [
    ['the claim cannot be read', (rig: Rig) => rig.refuse('get', 'persistentvolumeclaims')],
    [
      'something before the API server does not find the claim',
      (rig: Rig) => rig.fault({ match: claimReads, action: { type: 'htmlBody', code: 404 } }),
    ],
  ] as const) {
    test(`as long as ${what}`, async () => {
      const scene = await recoveryScene();
      await using rig = scene.rig;
      const { backend, handle } = scene;
      backend.fulfilSteps.push(lateAnswer(backend));
      await rig.start();
      const refusal = refuse(rig);
      rig.deleteClaim();
      await rig.until('the claim to be read', () => refusal.hits > 0);
      await scene.pass(20_000);
      assert.deepEqual(backend.deleted, []);
      refusal.remove();
      await scene.passUntil('the deletion', () => backend.deleted.length > 0);
      assert.deepEqual(backend.deleted, [handle]);
      await scene.undone();
    });
  }
});

test('a volume that is saved while the claim is read for the last time stops the deletion', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, handle, name, clock } = scene;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  const slow = rig.fault({
    match: { verb: 'get', resource: 'persistentvolumeclaims' },
    action: { type: 'delay', ms: 300 },
    after: 2,
  });
  rig.deleteClaim();
  await scene.passUntil('the last look at the claim', () => slow.hits > 0);
  rig.addVolume(name, 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: handle } } });
  await clock.settle();
  await scene.undone();
  assert.deepEqual(backend.deleted, []);
});

test('a claim that wants its volume again just before the deletion is served, and no deletion is recorded', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, clock, journal, name } = scene;
  let isOurs = true;
  backend.shouldProvision = () => isOurs;
  backend.fulfilSteps.push(lateAnswer(backend));
  backend.revokeSteps.push((plan, context) => {
    isOurs = true;
    return backend.undo(plan, context);
  });
  await rig.start();
  isOurs = false;
  rig.touchClaim();
  await scene.passUntil('the revoke', () => backend.revokes.length === 1);
  await clock.settle();
  await clock.advance(1000);
  await rig.until('the volume', () => rig.volume(name));
  await scene.passUntil('the record to be closed', () => journal.records.size === 0);
  assert.deepEqual(backend.deleted, []);
  assert.deepEqual(journal.writes, ['put create', 'remove']);
});

test('a claim that wants its volume again after the deletion was recorded is served, after that is recorded, too', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, name } = scene;
  let isOurs = true;
  backend.shouldProvision = () => isOurs;
  backend.fulfilSteps.push(lateAnswer(backend));
  journal.onPut = ({ phase }) => {
    if (phase !== 'delete') return Promise.resolve();
    isOurs = true;
    return Promise.reject(new Error('nobody knows whether it was written'));
  };
  await rig.start();
  isOurs = false;
  rig.touchClaim();
  await scene.passUntil('the volume', () => rig.volume(name));
  await scene.passUntil('the record to be closed', () => journal.records.size === 0);
  assert.deepEqual(backend.deleted, []);
  assert.deepEqual(journal.writes, ['put create', 'put unclear', 'remove']);
});

test('nothing is deleted before the deletion is recorded, which is the last that is awaited', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, handle } = scene;
  const written = Promise.withResolvers<undefined>();
  let asked = false;
  journal.onPut = ({ phase }) => {
    asked ||= phase === 'delete';
    return phase === 'delete' ? untilAborted(written.promise, rig.signals.abort) : Promise.resolve();
  };
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  rig.deleteClaim();
  await scene.passUntil('the record', () => asked);
  await rig.settle();
  assert.deepEqual(backend.deleted, []);
  const before = rig.wire.requests.length;
  assert.ok(namedLists(rig).length > 0, 'the look comes before the record');
  written.resolve(undefined);
  await rig.until('the deletion', () => backend.deleted.length > 0);
  assert.deepEqual(backend.deleted, [handle]);
  assert.equal(rig.wire.requests.length, before);
});

test('a volume that appears while the deletion is recorded stops it', async () => {
  const scene = await unwanted(({ rig, journal, name }) => {
    journal.onPut = async ({ phase }) => {
      if (phase !== 'delete') return;
      rig.addVolume(name, 'Available', { annotations: {} });
      await rig.settle();
    };
  });
  await using _rig = scene.rig;
  await unproved(scene);
  assert.deepEqual(scene.backend.deleted, []);
  assert.deepEqual(scene.journal.writes, ['put create', 'put revoke', 'put unclear', 'put delete']);
});

for (const indexed of [true, false]) {
  test(`many unwanted volumes share what is read of the volumes ${indexed ? 'with' : 'without'} an index of their storage`, async () => {
    const scene = await recoveryScene({ rig: { controller: { workers: 4 }, indexed } });
    await using rig = scene.rig;
    const { backend } = scene;
    const count = 40;
    for (let number = 1; number < count; number++) rig.addClaim(`b${number}`, { finalizers: [] });
    backend.otherwiseFulfil = lateAnswer(backend);
    const gate = Promise.withResolvers<undefined>();
    let waiting = 0;
    backend.otherwiseRevoke = async (plan, context) => {
      waiting++;
      await untilAborted(gate.promise, context.signal);
      await backend.undo(plan, context);
    };
    await rig.start();
    await rig.until('every volume', () => backend.storage.size === count);
    for (const { metadata } of rig.api.list(resource.claims)) {
      if (!metadata.name.startsWith('zz')) rig.deleteClaim(metadata.name);
    }
    await scene.passUntil('two revokes', () => waiting === 2);
    await rig.settle();
    assert.equal(waiting, 2, 'no more calls at a time');
    gate.resolve(undefined);
    await scene.passUntil('the deletions', () => backend.deleted.length === count);
    assert.ok(historyReads(rig).length <= count / 4, `${historyReads(rig).length} reads of the history`);
    assert.ok(liveLists(rig).length <= (indexed ? 0 : count / 4), `${liveLists(rig).length} lists`);
    await scene.undone();
    assert.equal(backend.storage.size, 0);
  });
}

describe('a volume that could not be saved', () => {
  const policies = ['Delete', 'Retain'] as const;
  for (const reclaimPolicy of policies) {
    test(`is deleted once the last request that creates it must have ended, also with policy ${reclaimPolicy}`, async () => {
      const scene = await recoveryScene({
        class: { reclaimPolicy },
        rig: { controller: { saveLimiter: new ExponentialLimiter({ baseMs: 20_000, maxMs: 20_000 }) } },
      });
      await using rig = scene.rig;
      const { backend, clock, seen, handle } = scene;
      const refusal = rig.refuse('create', 'persistentvolumes');
      rig.startOnly();
      await scene.passUntil('the last request', () => refusal.hits === 3);
      const sentMs = clock.monotonicMs();
      rig.deleteClaim();
      await scene.passUntil('the wait', () => seen.waiting().get('late-save') === 1);
      await clock.advance(sentMs + 64_000 - clock.monotonicMs());
      assert.deepEqual(backend.revokes, []);
      await scene.passUntil('the deletion', () => backend.deleted.length > 0);
      assert.deepEqual(backend.deleted, [handle]);
      await scene.undone();
      assert.deepEqual(seen.reported, []);
    });
  }

  test('is deleted at once where the API server has rejected every request that creates it', async () => {
    const scene = await recoveryScene({
      rig: { controller: { saveLimiter: new ExponentialLimiter({ baseMs: 20_000, maxMs: 20_000 }) } },
    });
    await using rig = scene.rig;
    const { backend, clock, seen, handle } = scene;
    const refusal = rig.refuse('create', 'persistentvolumes', { code: 403, reason: 'Forbidden' });
    rig.startOnly();
    await scene.passUntil('the second request', () => refusal.hits >= 2);
    const sentMs = clock.monotonicMs();
    rig.deleteClaim();
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
    assert.ok(clock.monotonicMs() - sentMs < 60_000, `after ${clock.monotonicMs() - sentMs} ms`);
    await scene.undone();
    assert.deepEqual(seen.reported, []);
  });

  test('is deleted at once where it was given up in the background with every request rejected', async () => {
    const limiter = new ExponentialLimiter({ baseMs: 10_000, maxMs: 10_000 });
    const scene = await recoveryScene({ rig: { controller: { saveLimiter: limiter } } });
    await using rig = scene.rig;
    const { backend, clock, seen, handle } = scene;
    rig.refuse('create', 'persistentvolumes', { code: 403, reason: 'Forbidden' });
    rig.startOnly();
    await rig.until('the failure', () => rig.unsavedLines === 1);
    backend.shouldProvision = () => false;
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
    assert.ok(clock.monotonicMs() < 60_000, `after ${clock.monotonicMs()} ms`);
    await scene.undone();
    assert.equal(backend.fulfils.length, 1);
    assert.deepEqual(seen.reported, []);
  });

  test('waits where one of the requests has had no clear answer, though a later one was rejected', async () => {
    const scene = await recoveryScene({
      rig: { controller: { saveLimiter: new ExponentialLimiter({ baseMs: 20_000, maxMs: 20_000 }) } },
    });
    await using rig = scene.rig;
    const { backend, clock, seen, handle } = scene;
    rig.refuse('create', 'persistentvolumes', { times: 1 });
    const refusal = rig.refuse('create', 'persistentvolumes', { code: 403, reason: 'Forbidden' });
    rig.startOnly();
    await scene.passUntil('the second request', () => refusal.hits >= 1);
    rig.deleteClaim();
    await scene.passUntil('the wait', () => seen.waiting().get('late-save') === 1);
    await clock.advance(65_000 - 25_000);
    assert.deepEqual(backend.revokes, []);
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
  });

  for (const [what, afterMs] of [
    ['whose answer was lost', 0],
    ['that the API server carried out late', 30_000],
  ] as const) {
    test(`by a request ${what} is kept by whoever retained it`, async () => {
      const saveLimiter = new ExponentialLimiter({ baseMs: 3_600_000, maxMs: 3_600_000 });
      const scene = await recoveryScene({ rig: { controller: { saveLimiter } } });
      await using rig = scene.rig;
      const { backend, clock, name, uid, handle } = scene;
      const match = { verb: 'create', resource: 'persistentvolumes' };
      const fault = rig.fault({ match, action: { type: afterMs === 0 ? 'dropAfter' : 'dropBefore' } });
      await rig.start();
      // the second is the first in the background, at once; from then on the limiter decides
      await rig.until('the second request', () => fault.hits === 2);
      await clock.settle();
      rig.deleteClaim();
      await clock.advance(afterMs);
      if (afterMs > 0) {
        const spec = { claimRef: { namespace: 'ns', name: 'a', uid }, csi: { driver: 'drv', volumeHandle: handle } };
        rig.addVolume(name, 'Bound', { spec: { ...spec, persistentVolumeReclaimPolicy: 'Retain' } });
      }
      rig.setFinalizers(name, []);
      rig.api.delete(resource.volumes, { name });
      await scene.undone();
      await clock.advance(20 * maxCallMs);
      assert.deepEqual(backend.deleted, []);
      assert.deepEqual(backend.revokes, []);
      assert.equal(backend.storage.size, 1);
    });
  }
});

test('storage that no volume ever had is deleted, also where its class says Retain', async () => {
  const scene = await recoveryScene({ class: { reclaimPolicy: 'Retain' } });
  await using rig = scene.rig;
  const { backend, handle } = scene;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  rig.deleteClaim();
  await scene.undone();
  assert.deepEqual(backend.deleted, [handle]);
  assert.deepEqual(scene.seen.reported, []);
});

/** Makes storage that is not fit, and deletes it again. */
function unfit(backend: ScriptedBackend, { cleaned = true } = {}): FulfilStep {
  return async ({ name, parameters }, context) => {
    const { volumeHandle = '' } = backend.make(name, parameters).spec.csi ?? {};
    await context.beforeDelete(volumeHandle);
    if (!cleaned) throw unclear('too small, and cannot be deleted');
    backend.deleteStorage(volumeHandle);
    throw new ProvisionError('too small', { state: 'in-background', afterUnclear: 'absent' });
  };
}

describe('a volume that is not fit for its claim', () => {
  test('is deleted after that is recorded, and another one is planned', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, passPause, handle } = scene;
    backend.fulfilSteps.push(unfit(backend));
    await rig.start();
    assert.deepEqual(journal.writes, ['put create', 'put delete', 'remove']);
    assert.deepEqual(backend.deleted, [handle]);
    await passPause();
    await rig.stop();
    assert.equal(rig.volumes[0]?.spec.csi?.volumeHandle, `${handle}-2`);
    assert.equal(backend.plans.length, 2);
  });

  test('keeps its record while an earlier call may make it again, which is deleted once the claim is gone', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, passPause, undone, name, handle } = scene;
    backend.fulfilSteps.push(unclear(), unfit(backend));
    await rig.start();
    await passPause();
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal([...journal.records.values()][0]?.phase, 'unclear');
    rig.deleteClaim();
    backend.make(name, 'late');
    await undone();
    assert.deepEqual(backend.deleted, [handle, `${handle}-2`]);
    assert.equal(backend.storage.size, 0);
  });

  test('is made for its claim by the same plan while an earlier call may make it again', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, passPause, handle } = scene;
    backend.fulfilSteps.push(unclear(), unfit(backend));
    await rig.start();
    await passPause();
    await passPause();
    await rig.stop();
    assert.equal(rig.volumes[0]?.spec.csi?.volumeHandle, `${handle}-2`);
    assert.equal(backend.plans.length, 1);
  });

  test('that cannot be deleted at once is gone before anything of its name is made', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, passPause, handle, journal, name, seen } = scene;
    backend.fulfilSteps.push(unfit(backend, { cleaned: false }));
    backend.revokeSteps.push(unclear('busy'));
    await rig.start();
    await rig.until('a try to delete it', () => backend.revokes.length === 1);
    assert.deepEqual(backend.revokes[0]?.handle, handle);
    await rig.until('an event', () => rig.events.some(({ message }) => message.includes('is not deleted yet: busy')));
    assert.equal([...journal.records.values()][0]?.phase, 'delete');
    assert.equal(seen.open.delete, 1);
    rig.touchClaim();
    await rig.settle();
    assert.equal(backend.fulfils.length, 1);
    await passPause().catch(() => undefined);
    await scene.passUntil('the volume', () => rig.volume(name));
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, `${handle}-2`);
  });

  for (const { what, more, reason, expected } of [
    {
      what: 'as the record is that of a copied journal',
      more: { reportOnly: 'the journal is a copy' },
      reason: 'restored',
      expected: /the journal is a copy/,
    },
    {
      what: 'as nobody knows since when a PersistentVolume may have had it',
      more: { since: '' },
      reason: 'unproved',
      expected: /not known since when/,
    },
  ] as const) {
    test(`that another process has begun stays ${what}`, async () => {
      const { since, ...rest } = { since: undefined, ...more };
      const found = (uid: string): FoundIntent => {
        return { record: leftRecord(uid, since === undefined ? {} : { since }), owner: 'own', ...rest };
      };
      const scene = await recoveryScene({ found: (uid) => [found(uid)] });
      await using rig = scene.rig;
      const { backend, clock, journal, uid } = scene;
      backend.otherwiseFulfil = unfit(backend);
      rig.startOnly();
      await scene.passUntil('the report', () => journal.records.get(uid)?.reason === reason);
      assert.match(journal.records.get(uid)?.problem ?? '', expected);
      await clock.advance(10 * maxCallMs);
      assert.deepEqual(backend.deleted, []);
    });
  }

  test('whose PersistentVolume the API server may still create stays until that is over', async () => {
    const scene = await recoveryScene({
      found: (uid) => [{ record: leftRecord(uid, { quietInMs: 65_000 }), owner: 'own' }],
    });
    await using rig = scene.rig;
    const { backend, journal, uid } = scene;
    backend.otherwiseFulfil = unfit(backend);
    rig.startOnly();
    await rig.until('an attempt', () => backend.fulfils.length > 0);
    await scene.pass(64_000);
    assert.deepEqual(backend.deleted, []);
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.equal(journal.records.get(uid)?.quietInMs, undefined);
  });

  test('that another process has begun is deleted at once, and its record stays while that one may still be making it', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, clock, journal, uid, handle } = scene;
    backend.fulfilSteps.push(unfit(backend));
    rig.startOnly();
    await rig.until('the deletion', () => backend.deleted.length > 0);
    await rig.until('its end', () => journal.records.get(uid)?.phase === 'unclear');
    assert.equal(clock.monotonicMs(), 0);
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(journal.writes, ['put delete', 'put unclear']);
  });

  test('that was returned once another process may have saved its volume stays, as somebody may have kept it', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, journal, name, uid, seen } = scene;
    backend.make(name);
    backend.otherwiseFulfil = unfit(backend);
    // an administrator has kept the storage
    const claimRef = { namespace: 'ns', name: 'a', uid };
    rig.addVolume(name, 'Bound', { spec: { claimRef, persistentVolumeReclaimPolicy: 'Retain' } });
    rig.api.delete(resource.volumes, { name });
    rig.startOnly();
    await scene.passUntil('the report', () => seen.reported.length > 0 || backend.deleted.length > 0);
    assert.deepEqual(seen.reported, ['unproved']);
    await scene.pass(2 * maxCallMs);
    assert.deepEqual(backend.deleted, []);
    assert.equal(journal.records.get(uid)?.reason, 'unproved');
  });

  test('that has a name of which the claim knows only a part stays, as it may be an older one', async () => {
    const scene = await recoveryScene({ rig: { controller: { volumeName: () => 'pvc-part' } } });
    await using rig = scene.rig;
    const { backend, journal, uid } = scene;
    backend.make('pvc-part');
    backend.otherwiseFulfil = unfit(backend);
    rig.startOnly();
    await scene.passUntil(
      'the report',
      () => journal.records.get(uid)?.reason === 'unproved' || backend.deleted.length > 0,
    );
    assert.match(journal.records.get(uid)?.problem ?? '', /does not contain the whole UID/);
    await scene.pass(2 * maxCallMs);
    assert.deepEqual(backend.deleted, []);
  });

  test('that a PersistentVolume of another name has is kept: the backend has returned storage that is in use', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, uid, handle } = scene;
    rig.addVolume('imported', 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: handle } } });
    backend.otherwiseFulfil = unfit(backend);
    rig.startOnly();
    await scene.passUntil(
      'the report',
      () => journal.records.get(uid)?.phase === 'stuck' || backend.deleted.length > 0,
    );
    assert.match(journal.records.get(uid)?.problem ?? '', /PersistentVolume "imported" exists and has the storage/);
    await scene.pass(2 * maxCallMs);
    assert.deepEqual(backend.deleted, []);
  });

  test('that has no handle stays', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal } = scene;
    backend.fulfilSteps.push(async (_plan, context) => {
      await context.beforeDelete('');
      throw new Error('not reached');
    });
    rig.startOnly();
    await rig.until('the record to be stuck', () => [...journal.records.values()][0]?.phase === 'stuck');
    assert.match([...journal.records.values()][0]?.problem ?? '', /no handle/);
  });

  test('is not deleted while the volumes cannot be listed, and is not made over and over meanwhile', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, passPause, handle, journal } = scene;
    backend.otherwiseFulfil = unfit(backend);
    const refusal = rig.refuse('list', 'persistentvolumes');
    await rig.start();
    await rig.settle();
    assert.equal(backend.fulfils.length, 1);
    await passPause();
    await rig.settle();
    assert.equal(backend.fulfils.length, 2);
    assert.equal(refusal.hits, 2);
    assert.deepEqual(backend.deleted, []);
    refusal.remove();
    await passPause();
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(journal.writes.slice(-2), ['put delete', 'remove'], 'each call had a clear result');
  });
});

describe('storage that no claim wants, and about which the backend gives only final errors', () => {
  const refused = new ProvisionError('bad parameter', { state: 'finished' });

  /** Waits for so many further attempts to undo it. @returns the milliseconds that pass meanwhile. */
  async function attempts({ backend, clock, passUntil }: RecoveryScene, count: number): Promise<number> {
    const startedMs = clock.monotonicMs();
    const wanted = backend.revokes.length + count;
    await passUntil(`${count} attempts`, () => backend.revokes.length >= wanted);
    return clock.monotonicMs() - startedMs;
  }

  test('is left to an operator after half an hour, and undone where that works after all', async () => {
    const scene = await unwanted(({ backend }) => {
      backend.otherwiseRevoke = () => Promise.reject(refused);
    });
    await using rig = scene.rig;
    const { backend, clock, seen, journal, handle, passUntil, closed } = scene;
    await attempts(scene, 1);
    const startedMs = clock.monotonicMs();
    await passUntil('the report', () => seen.reported.length === 1);
    const minutes = (clock.monotonicMs() - startedMs) / 60_000;
    assert.ok(minutes >= 30 && minutes <= 36, `reported after ${minutes} minutes`);
    await rig.until('the record to be stuck', () => [...journal.records.values()][0]?.phase === 'stuck');
    assert.deepEqual(seen.reported, ['undecidable']);
    backend.otherwiseRevoke = (plan, context) => backend.undo(plan, context);
    await attempts(scene, 1);
    await closed();
    assert.deepEqual(backend.deleted, [handle]);
  });

  test('is not left to anybody while an unclear result comes in between', async () => {
    let calls = 0;
    const scene = await unwanted(({ backend }) => {
      backend.otherwiseRevoke = () => Promise.reject(++calls % 3 === 0 ? unclear('busy') : refused);
    });
    await using _rig = scene.rig;
    const { seen, journal } = scene;
    const passedMs = await attempts(scene, 66);
    assert.ok(passedMs > 31 * 60_000, `${passedMs} ms`);
    assert.deepEqual(seen.reported, []);
    assert.equal([...journal.records.values()][0]?.phase, 'unclear');
  });
});
