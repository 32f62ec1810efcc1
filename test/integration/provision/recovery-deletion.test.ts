/** Nothing that anybody may use is deleted: the looks before the storage of an unwanted volume goes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FoundIntent } from '../../../src/provision/intent-journal/intent-journal.ts';
import { ProvisionError } from '../../../src/provision/provisioner.ts';
import { resource, type Rig } from './rig.ts';
import { leftRecord, maxCallMs, type RecoveryScene, recoveryScene } from './recovery-scene.ts';
import { type FulfilStep, lateAnswer, type ScriptedBackend, unclear } from './scripted-backend.ts';

/** The lists of all volumes that were read live. */
const liveLists = (rig: Rig): string[] =>
  rig.wire.requests
    .filter(({ method, path }) => method === 'GET' && /\/persistentvolumes\?limit=\d+$/.test(path))
    .map(({ path }) => path);

/** The claim was deleted while its volume may be in the making, and is about to be undone. */
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
    test(title, async () => {
      const scene = await unwanted(({ rig, handle }) => {
        rig.addVolume('by-hand', 'Bound', { annotations: {}, spec: spec(handle) });
      });
      await using rig = scene.rig;
      await scene.closed();
      assert.deepEqual(scene.backend.deleted, []);
      assert.equal(scene.backend.storage.size, 1);
      assert.equal(scene.seen.revoked, 0);
      assert.ok(
        rig.log.some(({ message }) => message === 'The storage is not deleted: a PersistentVolume refers to it'),
      );
    });
  }

  test('when the cache of volumes does not show it yet', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, closed, handle } = scene;
    const match = { resource: 'persistentvolumes', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    rig.fault({ match, action: { type: 'watchStall' } });
    backend.fulfilSteps.push(lateAnswer(backend));
    rig.startOnly();
    await rig.until('the attempt', () => backend.fulfils.length === 1);
    rig.addVolume('by-hand', 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: handle } } });
    rig.deleteClaim();
    await closed();
    assert.deepEqual(backend.deleted, []);
  });

  test('when it has only the name: then somebody has to look', async () => {
    const scene = await unwanted(({ rig, name }) => {
      rig.addVolume(name, 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: 'other' } } });
    });
    await using rig = scene.rig;
    const { backend, clock, seen, closed, name, handle, journal } = scene;
    await rig.until('the report', () => seen.reported.length === 1);
    assert.deepEqual(backend.deleted, []);
    assert.equal(journal.records.size, 1);
    const attempts = backend.revokes.length;
    await clock.advance(300_000);
    await rig.until('another attempt', () => backend.revokes.length > attempts);
    await rig.until('the record to be stuck again', () => [...journal.records.values()][0]?.phase === 'stuck');
    rig.api.delete(resource.volumes, { name });
    await clock.advance(300_000);
    await closed();
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(seen.reported, ['undecidable']);
  });

  test('as long as the volumes cannot be listed', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, closed, handle } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    const refusal = rig.refuse('list', 'persistentvolumes');
    rig.deleteClaim();
    await rig.until('the list to be refused', () => refusal.hits > 0);
    await clock.advance(0);
    assert.deepEqual(backend.deleted, []);
    refusal.remove();
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.deepEqual(backend.deleted, [handle]);
    await closed();
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
      const { backend, clock, closed } = scene;
      backend.fulfilSteps.push(lateAnswer(backend));
      await rig.start();
      const refusal = refuse(rig);
      rig.deleteClaim();
      await rig.until('the claim to be read', () => refusal.hits > 0);
      await clock.advance(10_000);
      assert.deepEqual(backend.deleted, []);
      refusal.remove();
      await clock.advance(60_000);
      await closed();
      assert.equal(backend.deleted.length, 1);
    });
  }
});

test('a volume that is saved between the list and the deletion stops it', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, closed, handle, name, clock } = scene;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  const slow = rig.fault({
    match: { verb: 'get', resource: 'persistentvolumeclaims' },
    action: { type: 'delay', ms: 300 },
    after: 1,
  });
  rig.deleteClaim();
  await rig.until('the last look at the claim', () => slow.hits === 1);
  rig.addVolume(name, 'Bound', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle: handle } } });
  await clock.settle();
  await closed();
  assert.deepEqual(backend.deleted, []);
});

test('a claim that wants its volume again just before the deletion is served, after that is recorded', async () => {
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
  await rig.until('the last look', () => journal.writes.includes('put unclear'));
  await clock.advance(1000);
  await rig.until('the volume', () => rig.volume(name));
  assert.deepEqual(backend.deleted, []);
  assert.deepEqual(journal.writes.slice(0, 3), ['put create', 'put delete', 'put unclear']);
});

test('nothing is deleted before the deletion is recorded', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, closed, handle } = scene;
  const written = Promise.withResolvers<undefined>();
  let asked = false;
  journal.onPut = ({ phase }) => {
    asked ||= phase === 'delete';
    return phase === 'delete' ? written.promise : Promise.resolve();
  };
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  rig.deleteClaim();
  await rig.until('the record', () => asked);
  await rig.settle();
  assert.deepEqual(backend.deleted, []);
  assert.deepEqual(liveLists(rig), [], 'the look comes after the record');
  written.resolve(undefined);
  await closed();
  assert.deepEqual(backend.deleted, [handle]);
});

test('many unwanted volumes share one list of the volumes', async () => {
  const scene = await recoveryScene({ rig: { controller: { workers: 4 } } });
  await using rig = scene.rig;
  const { backend } = scene;
  for (let number = 0; number < 9; number++) rig.addClaim(`b${number}`, { finalizers: [] });
  backend.otherwiseFulfil = lateAnswer(backend);
  const gate = Promise.withResolvers<undefined>();
  let waiting = 0;
  backend.otherwiseRevoke = async (plan, context) => {
    waiting++;
    await gate.promise;
    await backend.undo(plan, context);
  };
  await rig.start();
  await rig.until('every volume', () => backend.storage.size === 10);
  for (const { metadata } of rig.api.list(resource.claims)) {
    if (!metadata.name.startsWith('zz')) rig.deleteClaim(metadata.name);
  }
  await rig.until('two revokes', () => waiting === 2);
  await rig.settle();
  assert.equal(waiting, 2, 'no more at a time');
  gate.resolve(undefined);
  await scene.passUntil('the end', () => scene.journal.records.size === 0);
  assert.equal(backend.deleted.length, 10);
  assert.ok(liveLists(rig).length <= 6, `${liveLists(rig).length} lists`);
});

describe('a class that says Retain', () => {
  test('protects what was made from it once saving its volume was tried', async () => {
    const scene = await recoveryScene({
      class: { reclaimPolicy: 'Retain' },
      rig: { controller: { save: { kind: 'blocking', attempts: 1 } } },
    });
    await using rig = scene.rig;
    const { backend, seen, journal } = scene;
    rig.refuse('create', 'persistentvolumes');
    await rig.start();
    rig.deleteClaim();
    await rig.until('the report', () => seen.reported.length > 0);
    await rig.stop();
    assert.deepEqual(seen.reported, ['retain']);
    assert.deepEqual(backend.revokes, []);
    assert.equal(backend.storage.size, 1);
    assert.match([...journal.records.values()][0]?.problem ?? '', /has reclaimPolicy Retain/);
  });

  test('does not protect what nobody can have used', async () => {
    const scene = await recoveryScene({ class: { reclaimPolicy: 'Retain' } });
    await using rig = scene.rig;
    const { backend, closed, handle } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    rig.deleteClaim();
    await closed();
    assert.deepEqual(backend.deleted, [handle]);
  });
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

  for (const [what, more, expected] of [
    ['as the record is only reported', { reportOnly: 'the journal is a copy' }, /the journal is a copy/],
    [
      'as the class of the record says Retain',
      { record: { defaults: { persistentVolumeReclaimPolicy: 'Retain' } } },
      /has reclaimPolicy Retain/,
    ],
  ] as const) {
    test(`that another process has begun stays ${what}`, async () => {
      const found = (uid: string): FoundIntent => {
        const record = leftRecord(uid);
        const volume = { ...record.volume, ...('record' in more ? more.record : {}) };
        return { record: { ...record, volume }, owner: 'own', ...('reportOnly' in more && more) };
      };
      const scene = await recoveryScene({ found: (uid) => [found(uid)] });
      await using rig = scene.rig;
      const { backend, clock, journal } = scene;
      backend.otherwiseFulfil = unfit(backend);
      rig.startOnly();
      await rig.until('the record to be stuck', () => [...journal.records.values()][0]?.phase === 'stuck');
      assert.match([...journal.records.values()][0]?.problem ?? '', expected);
      await clock.advance(10 * maxCallMs);
      assert.deepEqual(backend.deleted, []);
    });
  }

  test('that another process has begun stays while that one may still be making it', async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, clock, handle } = scene;
    backend.otherwiseFulfil = unfit(backend);
    rig.startOnly();
    await rig.until('an attempt', () => backend.fulfils.length > 0);
    await clock.advance(maxCallMs - 1000);
    assert.deepEqual(backend.deleted, []);
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.equal(backend.deleted[0], handle);
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
    assert.deepEqual(journal.writes.slice(-2), ['put delete', 'remove']);
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
    const passedMs = await attempts(scene, 18);
    assert.ok(passedMs > 40 * 60_000, `${passedMs} ms`);
    assert.deepEqual(seen.reported, []);
    assert.equal([...journal.records.values()][0]?.phase, 'unclear');
  });
});
