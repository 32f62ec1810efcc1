/** A call that nobody waits for any more may make a volume: what no claim wants is deleted once, when none can be under way. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { noRecords } from '../../../src/provision/intent-journal/intent-journal.ts';
import { ProvisionError } from '../../../src/provision/provisioner.ts';
import { lateMs, leftRecord, maxCallMs, type RecoveryScene, recoveryScene } from './recovery-scene.ts';
import { resource } from './rig.ts';
import { lateAnswer, noRoom, unclear } from './scripted-backend.ts';

/** The claim was deleted after an attempt without a clear result, and its storage is not known: it is looked for when that call has ended. */
async function waiting(): Promise<RecoveryScene> {
  const scene = await recoveryScene();
  const { rig, backend, journal, uid } = scene;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  rig.deleteClaim();
  await rig.until('the wait', () => journal.records.get(uid)?.phase === 'revoke');
  return scene;
}

/** The same for a volume with a source: its storage is looked for at once, and the source is released. */
async function found(): Promise<RecoveryScene> {
  const scene = await recoveryScene();
  const { rig, backend } = scene;
  backend.hasSource = true;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  rig.deleteClaim();
  await rig.until('the release', () => backend.released.length === 1);
  return scene;
}

describe('a volume that no claim wants while a call may still make it', () => {
  test('is made once more and deleted once at 1.5 times the timeout after that call, and its record closed', async () => {
    const scene = await waiting();
    await using rig = scene.rig;
    const { backend, clock, seen, journal, handle } = scene;
    assert.deepEqual(seen.open, { ...noRecords(), revoke: 1 });
    await clock.advance(lateMs - 1000 - clock.monotonicMs());
    await rig.settle();
    assert.equal(backend.revokes.length, 0);
    await scene.undone();
    assert.ok(clock.monotonicMs() <= lateMs + 2000);
    assert.deepEqual(
      backend.revokes.map((call) => call.handle),
      [undefined],
      'it is looked for by its name',
    );
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(seen.open, noRecords());
    assert.deepEqual(journal.writes, ['put create', 'put revoke', 'put unclear', 'put delete', 'remove']);
    assert.equal(seen.revoked, 1);
    assert.equal(rig.log.filter(({ message }) => message.startsWith('Deleted the storage')).length, 1);
  });

  test('is announced once with the time of its deletion, however often the backend comes back', async () => {
    const scene = await waiting();
    await using rig = scene.rig;
    for (let n = 0; n < 3; n++) {
      rig.controller.retryFailed();
      await scene.clock.advance(1000);
      await rig.settle();
    }
    assert.deepEqual(scene.backend.revokes, []);
    const announced = rig.log.filter(({ message }) => message.startsWith('Storage that no claim wants is deleted'));
    const [{ fields } = { fields: {} }, ...more] = announced;
    assert.deepEqual(more, []);
    const { reason, maxCallSeconds, afterSeconds } = fields as Record<string, unknown>;
    assert.deepEqual([reason, maxCallSeconds], ['earlier-call', maxCallMs / 1000]);
    assert.ok(Number(afterSeconds) > maxCallMs / 1000 && Number(afterSeconds) <= lateMs / 1000, String(afterSeconds));
    await scene.undone();
  });

  test('with a source is looked for at once, and deleted by its handle when that call has ended', async () => {
    const scene = await found();
    await using rig = scene.rig;
    const { backend, clock, journal, uid, handle } = scene;
    const { phase, handle: recorded, quietInMs = 0 } = journal.records.get(uid)!;
    assert.deepEqual([phase, recorded], ['revoke', handle]);
    assert.ok(quietInMs > lateMs - 2000 && quietInMs <= lateMs, `${quietInMs} ms`);
    await clock.advance(lateMs - 1000 - clock.monotonicMs());
    await rig.settle();
    assert.deepEqual(backend.deleted, []);
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
    assert.deepEqual(
      backend.revokes.map((call) => call.handle),
      [undefined, handle],
    );
    assert.deepEqual(journal.writes, ['put create', 'put revoke', 'put delete', 'remove']);
  });

  test('with a source keeps it until the storage is recorded', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal } = scene;
    const written = Promise.withResolvers<undefined>();
    let isAsked = false;
    journal.onPut = ({ phase }) => {
      isAsked ||= phase === 'revoke';
      return phase === 'revoke' ? written.promise : Promise.resolve();
    };
    backend.hasSource = true;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    rig.deleteClaim();
    await rig.until('the record', () => isAsked);
    await rig.settle();
    assert.deepEqual(backend.released, []);
    written.resolve(undefined);
    await rig.until('the release', () => backend.released.length === 1);
    await scene.undone();
  });

  test('with a source is looked for again with back-off where that has no clear result', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, handle } = scene;
    backend.hasSource = true;
    backend.fulfilSteps.push(lateAnswer(backend));
    backend.revokeSteps.push(unclear(), unclear());
    await rig.start();
    rig.deleteClaim();
    await scene.passUntil('the release', () => backend.released.length === 1);
    const foundMs = clock.monotonicMs();
    assert.ok(foundMs <= 10_000, `${foundMs} ms`);
    await scene.undone();
    assert.ok(clock.monotonicMs() - foundMs >= lateMs - 4000, 'the last look that was unclear counts');
    assert.deepEqual(backend.deleted, [handle]);
  });

  test('is waited for anew after a look for it that had no clear result', async () => {
    const scene = await waiting();
    await using _rig = scene.rig;
    const { backend, clock, handle } = scene;
    backend.revokeSteps.push(unclear());
    await scene.passUntil('the look', () => backend.revokes.length === 1);
    const startedMs = clock.monotonicMs();
    await scene.undone();
    assert.ok(clock.monotonicMs() - startedMs >= lateMs - 2000);
    assert.deepEqual(backend.deleted, [handle]);
  });

  test('has a record without the wait while it is looked for, for a process that starts after its end', async () => {
    const scene = await waiting();
    await using _rig = scene.rig;
    const { backend, journal, uid } = scene;
    let record: object | undefined;
    backend.revokeSteps.push((plan, context) => {
      record = journal.records.get(uid);
      return backend.undo(plan, context);
    });
    await scene.undone();
    const { phase, quietInMs } = record as { phase: string; quietInMs?: number };
    assert.deepEqual([phase, quietInMs], ['unclear', undefined]);
  });

  for (const [what, left, revokes] of [
    ['the rest of the wait', { phase: 'revoke', handle: 'known', quietInMs: 5000 }, ['known']],
    ['the rest of the wait, and looks for it where it is not known', { phase: 'revoke', quietInMs: 5000 }, [undefined]],
  ] as const) {
    test(`is deleted by the next process after ${what}`, async () => {
      const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid, left), owner: 'own' }] });
      await using rig = scene.rig;
      const { backend, clock } = scene;
      rig.deleteClaim();
      await rig.start();
      await clock.advance(4999);
      await rig.settle();
      assert.deepEqual(backend.deleted, []);
      await scene.undone();
      assert.ok(clock.monotonicMs() <= 8000);
      assert.deepEqual(
        backend.revokes.map((call) => call.handle),
        revokes,
      );
      assert.equal(backend.deleted.length, 1);
    });
  }

  test('is deleted at once by the next process if its record says that no call was possible', async () => {
    const scene = await recoveryScene({
      found: (uid) => [
        { record: leftRecord(uid, { phase: 'delete', handle: 'deleted-before', quietInMs: 0 }), owner: 'own' },
      ],
    });
    await using rig = scene.rig;
    const { backend, clock, journal } = scene;
    rig.deleteClaim();
    await rig.start();
    await scene.undone();
    assert.ok(clock.monotonicMs() <= 3000);
    assert.deepEqual(backend.deleted, ['deleted-before']);
    assert.deepEqual(journal.writes, ['put delete', 'remove']);
  });

  test('is looked for when that call has ended if a previous process may have deleted it before', async () => {
    const scene = await recoveryScene({
      found: (uid) => [{ record: leftRecord(uid, { phase: 'delete', handle: 'deleted-before' }), owner: 'own' }],
    });
    await using rig = scene.rig;
    const { backend, clock, name, handle } = scene;
    rig.deleteClaim();
    await rig.start();
    await scene.passUntil('the deletion', () => backend.deleted.length === 1);
    await clock.advance(maxCallMs);
    backend.make(name, 'late');
    await scene.undone();
    assert.deepEqual(backend.deleted, ['deleted-before', handle]);
    assert.equal(backend.storage.size, 0);
  });

  for (const state of ['finished', 'reschedule'] as const) {
    test(`is looked for again after a refusal with state ${state}, which does not say that it is gone`, async () => {
      const scene = await waiting();
      await using _rig = scene.rig;
      const { backend, handle, seen } = scene;
      backend.revokeSteps.push(new ProvisionError('overloaded', { state }));
      await scene.undone();
      assert.deepEqual(backend.deleted, [handle]);
      assert.equal(backend.storage.size, 0);
      assert.deepEqual(seen.reported, []);
    });
  }

  for (const [what, error] of [
    ['cannot be looked for, such as without its Secret', { state: 'no-change', afterUnclear: 'undecidable' }],
    ['is refused for half an hour', { state: 'finished' }],
  ] as const) {
    test(`that ${what} is left to an operator`, async () => {
      const scene = await waiting();
      await using _rig = scene.rig;
      const { backend, seen, journal, uid } = scene;
      backend.otherwiseRevoke = () => Promise.reject(new ProvisionError('no', error));
      await scene.passUntil('the report', () => seen.reported.length > 0);
      assert.deepEqual(backend.deleted, []);
      assert.deepEqual(seen.reported, ['undecidable']);
      assert.equal(journal.records.get(uid)?.phase, 'stuck');
    });
  }

  test('is closed without a deletion if it certainly does not exist then', async () => {
    const scene = await waiting();
    await using rig = scene.rig;
    const { backend, seen } = scene;
    backend.storage.clear();
    backend.otherwiseRevoke = new ProvisionError('there is none', { state: 'in-background', afterUnclear: 'absent' });
    await scene.undone();
    assert.deepEqual([backend.deleted, seen.revoked], [[], 0]);
    assert.equal(rig.log.filter(({ message }) => message.startsWith('Deleted the storage')).length, 0);
  });

  test('is closed without a deletion when the backend has no room for it twice: it would return one that is there', async () => {
    const scene = await waiting();
    await using _rig = scene.rig;
    const { backend, seen } = scene;
    backend.storage.clear();
    backend.otherwiseRevoke = noRoom('finished');
    await scene.undone();
    assert.equal(backend.revokes.length, 2);
    assert.deepEqual([backend.deleted, seen.reported], [[], []]);
  });

  test('is looked for again when the backend had no room for it once', async () => {
    const scene = await waiting();
    await using _rig = scene.rig;
    const { backend, handle, seen } = scene;
    backend.revokeSteps.push(noRoom('finished'));
    await scene.undone();
    assert.deepEqual([backend.deleted, seen.reported], [[handle], []]);
  });

  test('is looked for once more when that call has ended if it certainly did not exist before', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, name, handle, seen } = scene;
    backend.hasSource = true;
    backend.fulfilSteps.push(unclear());
    backend.revokeSteps.push(
      new ProvisionError('there is none', { state: 'in-background', afterUnclear: 'absent' }),
      new ProvisionError('there is none', { state: 'in-background', afterUnclear: 'absent' }),
    );
    await rig.start();
    rig.deleteClaim();
    await rig.until('the look', () => backend.revokes.length === 1);
    backend.make(name, 'late');
    backend.revokeSteps.length = 0;
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal(seen.revoked, 1);
  });

  for (const [what, spec] of [
    ['that is gone again', undefined],
    ['with its storage', 'ours'],
  ] as const) {
    test(`stays once there was a PersistentVolume of its name ${what}`, async () => {
      const scene = await found();
      await using rig = scene.rig;
      const { backend, clock, name, journal, uid } = scene;
      const { volumeHandle } = backend.make(name).spec.csi ?? {};
      rig.addVolume(name, 'Available', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle } } });
      if (spec === undefined) rig.api.delete(resource.volumes, { name });
      await scene.passUntil('the report', () => journal.records.get(uid)?.reason === 'unproved');
      await clock.advance(10 * lateMs);
      assert.deepEqual(backend.deleted, []);
      assert.equal(backend.storage.size, 1);
    });
  }

  for (const hasSource of [false, true]) {
    test(`is given back at once to its claim, if that wants it again${hasSource ? ', also when it was looked for' : ''}`, async () => {
      const scene = await recoveryScene();
      await using rig = scene.rig;
      const { backend, clock, journal, name, seen, handle } = scene;
      backend.hasSource = hasSource;
      let isOurs = true;
      backend.shouldProvision = () => isOurs;
      backend.fulfilSteps.push(lateAnswer(backend));
      await rig.start();
      isOurs = false;
      rig.touchClaim();
      await rig.until('the wait', () => seen.waiting().get('earlier-call') === 1);
      if (hasSource) await rig.until('the release', () => backend.released.length > 0);
      const beforeMs = clock.monotonicMs();
      isOurs = true;
      rig.touchClaim();
      await rig.until('the volume', () => rig.volume(name));
      assert.equal(clock.monotonicMs(), beforeMs);
      await scene.passUntil('the record to be closed', () => journal.records.size === 0);
      await clock.advance(10 * lateMs);
      await rig.settle();
      assert.deepEqual(backend.deleted, []);
      assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, handle);
    });
  }

  test('is given back at once to its claim, if that wants it again while it is looked for', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, name, uid, handle } = scene;
    backend.hasSource = true;
    let isOurs = true;
    backend.shouldProvision = () => isOurs;
    backend.fulfilSteps.push(lateAnswer(backend));
    const look = Promise.withResolvers<undefined>();
    backend.revokeSteps.push(async (plan, context) => {
      await look.promise;
      await backend.undo(plan, context);
    });
    await rig.start();
    isOurs = false;
    rig.touchClaim();
    await rig.until('the look', () => backend.revokes.length === 1);
    const [beforeMs, syncs] = [clock.monotonicMs(), rig.limiter.syncs(uid).length];
    isOurs = true;
    rig.touchClaim();
    await rig.synced(uid, syncs + 1); // it can decide nothing, as the look is under way
    look.resolve(undefined);
    await rig.until('the volume', () => rig.volume(name));
    assert.equal(clock.monotonicMs(), beforeMs);
    assert.deepEqual(backend.deleted, []);
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, handle);
  });

  test('has no wait recorded while its claim exists: a process that keeps no records may create it again', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, journal, seen, uid } = scene;
    let isOurs = true;
    backend.shouldProvision = () => isOurs;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    isOurs = false;
    rig.touchClaim();
    await rig.until('the wait', () => seen.waiting().get('earlier-call') === 1);
    await scene.pass(5000);
    const { phase, quietInMs } = journal.records.get(uid) ?? {};
    assert.deepEqual([phase, quietInMs], ['unclear', undefined]);
    await scene.undone();
  });

  test('is not given back while it is being deleted: its claim waits for the end of that', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, name, handle } = scene;
    let isOurs = true;
    backend.shouldProvision = () => isOurs;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    isOurs = false;
    rig.touchClaim();
    const match = { verb: 'list', resource: 'persistentvolumes' };
    const slow = rig.fault({ match, action: { type: 'delay', ms: 300 } });
    await scene.passUntil('the last request before the deletion', () => slow.hits > 0);
    isOurs = true;
    rig.touchClaim();
    await rig.settle();
    assert.equal(backend.fulfils.length, 1);
    slow.remove();
    await scene.passUntil('the volume', () => rig.volume(name));
    await clock.advance(10 * lateMs);
    await rig.settle();
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, backend.storage.get(name)?.handle);
  });
});

for (const [phase, level] of [
  ['unclear', 'warn'],
  ['create', 'info'],
] as const) {
  test(`a volume that others have removed is logged with level ${level} where its record is in the phase ${phase}`, async () => {
    const scene = await recoveryScene({ found: (uid) => [{ record: leftRecord(uid, { phase }), owner: 'own' }] });
    await using rig = scene.rig;
    const { backend, name, uid, handle } = scene;
    const claimRef = { namespace: 'ns', name: 'a', uid };
    rig.addVolume(name, 'Bound', { spec: { csi: { driver: 'drv', volumeHandle: handle }, claimRef } });
    rig.api.delete(resource.volumes, { name });
    rig.deleteClaim();
    await rig.start();
    await scene.undone();
    const lines = rig.log.filter(({ message }) => message.includes('was removed by others'));
    assert.deepEqual(
      lines.map((line) => line.level),
      [level],
    );
    assert.deepEqual(backend.deleted, []);
  });
}

test('a deletion that failed is repeated after a short pause, and the volume is deleted only once', async () => {
  const scene = await recoveryScene({ rig: { controller: { maxCallMs: 10_000 } } });
  await using rig = scene.rig;
  const { backend, clock, journal, handle } = scene;
  backend.fulfilSteps.push(unclear());
  backend.revokeSteps.push(async (plan, context) => {
    backend.make(plan.name);
    await context.beforeDelete(handle);
    throw unclear('it is busy');
  });
  await rig.start();
  await rig.until('the attempt', () => backend.fulfils.length === 1);
  rig.deleteClaim();
  await scene.passUntil('the attempt to delete it', () => journal.writes.includes('put delete'));
  const startedMs = clock.monotonicMs();
  await scene.undone();
  assert.ok(clock.monotonicMs() - startedMs <= 3000);
  assert.deepEqual(backend.deleted, [handle]);
  assert.deepEqual(journal.writes, ['put create', 'put revoke', 'put unclear', 'put delete', 'put delete', 'remove']);
});

test('the storage of a PersistentVolume that is reclaimed is not looked for again, as a driver may archive what it deletes', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, clock, name, handle } = scene;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  await scene.passPause();
  await rig.until('the volume', () => rig.volume(name));
  rig.deleteClaim();
  rig.releaseVolume(name);
  await scene.passUntil('the reclaim', () => backend.deleted.length > 0);
  await clock.advance(10 * maxCallMs);
  await rig.settle();
  assert.deepEqual(backend.deleted, [handle]);
  assert.deepEqual(backend.revokes, []);
  assert.equal(backend.storage.size, 0);
});

test('a released volume is reclaimed once a call that was given up must have ended, or after a minute', async () => {
  for (const [timeoutMs, heldMs] of [
    [10_000, 15_000],
    [150_000, 60_000],
  ] as const) {
    const scene = await recoveryScene({ rig: { controller: { maxCallMs: timeoutMs } } });
    await using rig = scene.rig;
    const { backend, clock, name, handle } = scene;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    await rig.until('the attempt', () => backend.fulfils.length === 1);
    const calledMs = clock.monotonicMs();
    await scene.passPause();
    await rig.until('the volume', () => rig.volume(name));
    rig.deleteClaim();
    rig.releaseVolume(name);
    await scene.pass(heldMs - 1000 - (clock.monotonicMs() - calledMs));
    assert.deepEqual(backend.deleted, []);
    await scene.passUntil('the reclaim', () => backend.deleted.length > 0);
    assert.ok(clock.monotonicMs() - calledMs <= heldMs + 2000);
    assert.deepEqual(backend.deleted, [handle]);
  }
});

test('a claim whose PersistentVolume disappears while its record is kept for an earlier call gets it again once the record is closed', async () => {
  const scene = await recoveryScene({ rig: { controller: { maxCallMs: 10_000 } } });
  await using rig = scene.rig;
  const { backend, journal, name, handle } = scene;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  await rig.until('the attempt', () => backend.fulfils.length === 1);
  await scene.passUntil('the volume', () => rig.volume(name));
  assert.equal(journal.records.size, 1);
  const saved = rig.api.get(resource.volumes, { name })!;
  rig.api.update(resource.volumes, { ...saved, metadata: { ...saved.metadata, finalizers: [] } });
  rig.api.delete(resource.volumes, { name }); // as after a restore of the API server, where there is no event for the claim
  await rig.settle();
  await scene.passUntil('the volume', () => rig.volume(name));
  assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, handle);
  assert.deepEqual(backend.deleted, []);
});
