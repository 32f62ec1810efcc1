/** A call that nobody waits for any more may make a volume again after it was deleted: it is revoked a second time. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { noRecords } from '../../../src/provision/intent-journal/intent-record.ts';
import { ProvisionError } from '../../../src/provision/provisioner.ts';
import { lateMs, leftRecord, maxCallMs, type RecoveryScene, recoveryScene } from './recovery-scene.ts';
import { resource } from './rig.ts';
import { lateAnswer, unclear } from './scripted-backend.ts';

/** The claim was deleted after an attempt without a clear result, and what that made was deleted. */
async function deletedOnce(): Promise<RecoveryScene> {
  const scene = await recoveryScene();
  const { rig, backend, journal, uid } = scene;
  backend.fulfilSteps.push(lateAnswer(backend));
  await rig.start();
  rig.deleteClaim();
  await scene.passUntil('the deletion', () => journal.records.get(uid)?.phase === 'revoked');
  assert.equal(backend.deleted.length, 1);
  return scene;
}

describe('a volume that was deleted while a call may still make it', () => {
  test('is revoked a second time at 1.5 times the timeout after that call, and its record closed', async () => {
    const scene = await deletedOnce();
    await using rig = scene.rig;
    const { backend, clock, seen, journal } = scene;
    assert.deepEqual(seen.open, { ...noRecords(), revoked: 1 });
    backend.revokeSteps.push((_plan, { handle }) => {
      assert.equal(handle, undefined, 'it is looked for by its name');
      return Promise.resolve();
    });
    await clock.advance(lateMs - 1000 - clock.monotonicMs());
    await rig.settle();
    assert.equal(backend.revokes.length, 1);
    await scene.undone();
    assert.equal(backend.revokes.length, 2);
    assert.ok(clock.monotonicMs() <= lateMs + 2000);
    assert.deepEqual(seen.open, noRecords());
    assert.deepEqual(journal.writes, ['put create', 'put delete', 'put revoked', 'put unclear', 'remove']);
    assert.equal(seen.revoked, 1, 'counted once');
    assert.equal(rig.log.filter(({ message }) => message.startsWith('Deleted the storage')).length, 1);
  });

  test('is announced once with the time of the second revoke, however often the backend comes back', async () => {
    const scene = await deletedOnce();
    await using rig = scene.rig;
    for (let n = 0; n < 3; n++) {
      rig.controller.retryFailed();
      await scene.clock.advance(1000);
      await rig.settle();
    }
    const announced = rig.log.filter(({ message }) => message.startsWith('Storage that no claim wants is deleted'));
    const [{ fields } = { fields: {} }, ...more] = announced;
    assert.deepEqual(more, []);
    const { reason, maxCallSeconds, afterSeconds } = fields as Record<string, unknown>;
    assert.deepEqual([reason, maxCallSeconds], ['second-revoke', maxCallMs / 1000]);
    assert.ok(Number(afterSeconds) > maxCallMs / 1000 && Number(afterSeconds) <= lateMs / 1000, String(afterSeconds));
    await scene.undone();
  });

  test('is found and deleted when that call has made it', async () => {
    const scene = await deletedOnce();
    await using _rig = scene.rig;
    const { backend, name, handle } = scene;
    backend.make(name, 'late');
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle, `${handle}-2`]);
    assert.equal(backend.storage.size, 0);
  });

  test('is revoked a second time if a previous process may have deleted it before that call ended', async () => {
    const scene = await recoveryScene({
      found: (uid) => [{ record: leftRecord(uid, { phase: 'delete', handle: 'deleted-before' }), owner: 'own' }],
    });
    await using rig = scene.rig;
    const { backend, clock, name, handle } = scene;
    backend.make(name, 'late'); // by a call that ended after the deletion, whose response that process has not lived to see
    backend.revokeSteps.push(async (plan, context) => {
      await clock.sleep(lateMs, { signal: context.signal }); // long after any such call
      await backend.undo(plan, context);
    });
    rig.deleteClaim();
    await rig.start();
    await scene.undone();
    assert.deepEqual(backend.deleted, ['deleted-before', handle]);
    assert.equal(backend.storage.size, 0);
  });

  test('is deleted once by the next process if its record says that no late call was possible', async () => {
    const scene = await recoveryScene({
      found: (uid) => [
        { record: leftRecord(uid, { phase: 'delete', handle: 'deleted-before', noLateCalls: true }), owner: 'own' },
      ],
    });
    await using rig = scene.rig;
    const { backend, clock, journal } = scene;
    backend.revokeSteps.push(async (plan, context) => {
      await context.beforeDelete('deleted-before');
      throw unclear('it is busy');
    });
    rig.deleteClaim();
    await rig.start();
    await clock.advance(maxCallMs - 1);
    assert.deepEqual(backend.revokes, []);
    await scene.undone();
    assert.deepEqual(
      backend.revokes.map(({ handle }) => handle),
      ['deleted-before', 'deleted-before'],
    );
    assert.deepEqual(backend.deleted, ['deleted-before']);
    assert.deepEqual(journal.writes, ['put delete', 'put delete', 'remove']);
  });

  for (const [when, waitsMs, noLateCalls] of [
    ['before', 0, undefined],
    ['after', lateMs, true],
  ] as const) {
    test(`has a record that says whether its deletion was first sent ${when} the end of such a call`, async () => {
      const scene = await recoveryScene();
      await using rig = scene.rig;
      const { backend, clock, journal, handle } = scene;
      const seen: unknown[] = [];
      journal.onPut = (record) => {
        if (record.phase !== 'create') seen.push([record.phase, record.noLateCalls]);
        return Promise.resolve();
      };
      backend.fulfilSteps.push(lateAnswer(backend));
      backend.revokeSteps.push(async (_plan, context) => {
        await clock.sleep(waitsMs, { signal: context.signal });
        await context.beforeDelete(handle);
        throw unclear('it is busy');
      });
      await rig.start();
      await rig.until('the attempt', () => backend.fulfils.length === 1);
      rig.deleteClaim();
      await scene.passUntil('the deletion', () => seen.length > 0);
      await scene.undone();
      const secondRevoke = [
        ['revoked', undefined],
        ['unclear', undefined],
        ['delete', true],
      ];
      assert.deepEqual(seen, [
        ['delete', noLateCalls],
        ['delete', noLateCalls],
        ...(noLateCalls === undefined ? secondRevoke : []),
      ]);
    });
  }

  for (const state of ['finished', 'reschedule'] as const) {
    test(`is looked for again after a refusal with state ${state}, which does not say that it is gone`, async () => {
      const scene = await deletedOnce();
      await using _rig = scene.rig;
      const { backend, name, handle, seen } = scene;
      backend.make(name, 'late');
      backend.revokeSteps.push(new ProvisionError('overloaded', { state }));
      await scene.undone();
      assert.deepEqual(backend.deleted, [handle, `${handle}-2`]);
      assert.equal(backend.storage.size, 0);
      assert.deepEqual(seen.reported, []);
    });
  }

  for (const [what, error] of [
    ['cannot be looked for, such as without its Secret', { state: 'finished', afterUnclear: 'undecidable' }],
    ['is refused for half an hour', { state: 'finished' }],
  ] as const) {
    test(`that ${what} is reported, and the record closed`, async () => {
      const scene = await deletedOnce();
      await using rig = scene.rig;
      const { backend, handle, seen } = scene;
      backend.otherwiseRevoke = () => Promise.reject(new ProvisionError('no', error));
      await scene.undone();
      assert.deepEqual(backend.deleted, [handle]);
      assert.deepEqual(seen.reported, ['undecidable']);
      assert.ok(rig.log.some(({ message }) => message.startsWith('A deleted volume cannot be revoked a second time')));
    });
  }

  test('is revoked again later when the second revoke has no clear result', async () => {
    const scene = await deletedOnce();
    await using _rig = scene.rig;
    const { backend, clock, name, handle } = scene;
    backend.revokeSteps.push(unclear());
    await scene.passUntil('the second revoke', () => backend.revokes.length === 2);
    const startedMs = clock.monotonicMs();
    backend.make(name, 'late');
    await scene.undone();
    assert.ok(clock.monotonicMs() - startedMs >= lateMs - 2000);
    assert.deepEqual(backend.deleted, [handle, `${handle}-2`, `${handle}-3`]);
  });

  test('stays recorded when the second revoke may have made it and it cannot be revoked any more', async () => {
    const scene = await deletedOnce();
    await using _rig = scene.rig;
    const { backend, journal, name, uid, seen } = scene;
    backend.revokeSteps.push(unclear());
    const error = { state: 'no-change', afterUnclear: 'undecidable' } as const;
    backend.otherwiseRevoke = () => Promise.reject(new ProvisionError('its Secret is gone', error));
    await scene.passUntil('the second revoke', () => backend.revokes.length === 2);
    backend.make(name, 'late');
    await scene.passUntil('the report', () => seen.reported.length > 0);
    assert.equal(journal.records.get(uid)?.phase, 'stuck');
  });

  test('is recorded as unclear before the second revoke is sent, for a process that starts after its end', async () => {
    const scene = await deletedOnce();
    await using _rig = scene.rig;
    const { backend, journal, uid } = scene;
    let phase: string | undefined;
    backend.revokeSteps.push(() => {
      phase = journal.records.get(uid)?.phase;
      return Promise.resolve();
    });
    await scene.undone();
    assert.equal(phase, 'unclear');
  });

  test('is found by a new process, too', async () => {
    const scene = await recoveryScene({
      found: (uid) => [{ record: leftRecord(uid, { phase: 'revoked' }), owner: 'own' }],
    });
    await using rig = scene.rig;
    const { backend, clock, name, handle } = scene;
    rig.deleteClaim();
    await rig.start();
    backend.make(name, 'late');
    await clock.advance(lateMs - 1);
    await rig.settle();
    assert.deepEqual(backend.revokes, []);
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle]);
  });

  for (const [what, spec] of [
    ['that is gone again', undefined],
    ['with its storage', 'ours'],
  ] as const) {
    test(`stays once there was a PersistentVolume of its name ${what}`, async () => {
      const scene = await deletedOnce();
      await using rig = scene.rig;
      const { backend, clock, name, handle, journal, uid } = scene;
      const { volumeHandle } = backend.make(name, 'late').spec.csi ?? {};
      rig.addVolume(name, 'Available', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle } } });
      if (spec === undefined) rig.api.delete(resource.volumes, { name });
      await scene.passUntil('the report', () => journal.records.get(uid)?.phase === 'unproved');
      await clock.advance(10 * lateMs);
      assert.deepEqual(backend.deleted, [handle]);
      assert.equal(backend.storage.size, 1);
    });
  }

  test('is not kept from its claim, if that wants a volume again: nothing waits and nothing is deleted', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, journal, name, uid, handle } = scene;
    let isOurs = true;
    backend.shouldProvision = () => isOurs;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    isOurs = false;
    rig.touchClaim();
    await scene.passUntil('the deletion', () => journal.records.get(uid)?.phase === 'revoked');
    const beforeMs = clock.monotonicMs();
    isOurs = true;
    rig.touchClaim();
    await rig.until('the volume', () => rig.volume(name));
    assert.equal(clock.monotonicMs(), beforeMs);
    await scene.passUntil('the record to be closed', () => journal.records.size === 0);
    await clock.advance(10 * lateMs);
    await rig.settle();
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, `${handle}-2`);
  });

  test('waits for the end of a second revoke that has begun when its claim wants it again', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { backend, clock, journal, name, uid, handle } = scene;
    let isOurs = true;
    backend.shouldProvision = () => isOurs;
    backend.fulfilSteps.push(lateAnswer(backend));
    await rig.start();
    isOurs = false;
    rig.touchClaim();
    await scene.passUntil('the deletion', () => journal.records.get(uid)?.phase === 'revoked');
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
    assert.deepEqual(backend.deleted, [handle, `${handle}-2`]);
    assert.equal(rig.volume(name)?.spec.csi?.volumeHandle, backend.storage.get(name)?.handle);
  });
});

describe('an attempt to undo a volume that ends without a clear result', () => {
  const started = async (timeoutMs: number): Promise<RecoveryScene> => {
    const scene = await recoveryScene({ rig: { controller: { maxCallMs: timeoutMs } } });
    const { rig, backend } = scene;
    backend.fulfilSteps.push(unclear());
    backend.revokeSteps.push(unclear());
    await rig.start();
    await rig.until('the attempt', () => backend.fulfils.length === 1);
    rig.deleteClaim();
    await rig.until('the attempt to undo it', () => backend.revokes.length > 0);
    return scene;
  };

  test('is repeated once its call must have ended, so that the volume is deleted only once', async () => {
    const timeoutMs = 10_000;
    const scene = await started(timeoutMs);
    await using rig = scene.rig;
    const { backend, clock, journal, name, handle, seen } = scene;
    const startedMs = clock.monotonicMs();
    await scene.pass(1.5 * timeoutMs - 2000);
    rig.controller.retryFailed();
    await rig.settle();
    assert.equal(backend.revokes.length, 1);
    assert.equal(seen.waiting().get('earlier-call'), 1);
    backend.make(name, 'late');
    await scene.undone();
    assert.ok(clock.monotonicMs() - startedMs <= 1.5 * timeoutMs + 2000);
    assert.deepEqual(backend.deleted, [handle]);
    assert.equal(backend.storage.size, 0);
    assert.deepEqual(journal.writes, ['put create', 'put delete', 'remove']);
  });

  test('is repeated after pauses that grow while no attempt has a clear result', async () => {
    const timeoutMs = 10_000;
    const scene = await started(timeoutMs);
    await using _rig = scene.rig;
    const { backend, clock } = scene;
    backend.otherwiseRevoke = unclear();
    const times = [clock.monotonicMs()];
    for (let count = 2; count <= 8; count++) {
      await scene.passUntil('the next attempt', () => backend.revokes.length === count);
      times.push(clock.monotonicMs());
    }
    const pauses = times.slice(1).map((time, index) => Math.round((time - (times[index] ?? 0)) / 1000));
    assert.deepEqual(pauses, [15, 15, 15, 15, 16, 32, 64]);
  });

  test('is repeated after a short pause if it was the deletion that failed, and the volume is deleted only once', async () => {
    const scene = await recoveryScene({ rig: { controller: { maxCallMs: 10_000 } } });
    await using rig = scene.rig;
    const { backend, clock, journal, handle } = scene;
    backend.fulfilSteps.push(unclear());
    backend.revokeSteps.push(async (plan, context) => {
      await clock.sleep(15_000, { signal: context.signal }); // the first attempt's call has ended
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
    assert.deepEqual(journal.writes, ['put create', 'put delete', 'put delete', 'remove']);
  });

  test('is repeated after a short pause if its call may last for more than a minute', async () => {
    const scene = await started(150_000);
    await using _rig = scene.rig;
    const { backend, clock, handle } = scene;
    const startedMs = clock.monotonicMs();
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.ok(clock.monotonicMs() - startedMs <= 5000);
    await scene.undone();
    assert.deepEqual(backend.deleted, [handle, `${handle}-2`]);
  });

  test('is repeated after a short pause if the claim still exists, which may need another volume', async () => {
    const scene = await recoveryScene({ rig: { controller: { maxCallMs: 10_000 } } });
    await using rig = scene.rig;
    const { backend, clock } = scene;
    let isOurs = true;
    backend.shouldProvision = () => isOurs;
    backend.fulfilSteps.push(unclear());
    backend.revokeSteps.push(unclear());
    await rig.start();
    await rig.until('the attempt', () => backend.fulfils.length === 1);
    isOurs = false;
    rig.touchClaim();
    await rig.until('the attempt to undo it', () => backend.revokes.length > 0);
    const startedMs = clock.monotonicMs();
    await scene.passUntil('the deletion', () => backend.deleted.length > 0);
    assert.ok(clock.monotonicMs() - startedMs <= 5000);
    await scene.undone();
  });
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

test('a volume that the first revoke certainly did not find is revoked again, and deleted if a late call has made it', async () => {
  const scene = await recoveryScene();
  await using rig = scene.rig;
  const { backend, journal, uid, name, handle, seen } = scene;
  backend.fulfilSteps.push(unclear());
  backend.revokeSteps.push(() =>
    Promise.reject(new ProvisionError('there is none', { state: 'in-background', afterUnclear: 'absent' })),
  );
  await rig.start();
  rig.deleteClaim();
  await scene.passUntil('the first revoke', () => journal.records.get(uid)?.phase === 'revoked');
  assert.equal(seen.revoked, 0);
  backend.make(name, 'late');
  await scene.undone();
  assert.deepEqual(backend.deleted, [handle]);
  assert.equal(backend.storage.size, 0);
  assert.equal(seen.revoked, 1);
  assert.equal(rig.log.filter(({ message }) => message.startsWith('Deleted the storage')).length, 1);
});

test('a volume that an earlier process has deleted is revoked again without another report of its deletion', async () => {
  const scene = await recoveryScene({
    found: (uid) => [{ record: leftRecord(uid, { phase: 'revoked' }), owner: 'own' }],
  });
  await using rig = scene.rig;
  const { backend, seen } = scene;
  rig.deleteClaim();
  await rig.start();
  await scene.undone();
  assert.ok(backend.revokes.length > 0);
  assert.equal(seen.revoked, 0);
  assert.equal(rig.log.filter(({ message }) => message.startsWith('Deleted the storage')).length, 0);
});
