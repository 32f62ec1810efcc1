import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { IgnoredError, VolumeInUseError } from '../../../src/provision/provisioner.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { freePort } from '../../support/free-ports.ts';
import { annotation, F, pvProtection, resource, Rig, type VolumeSketch } from './rig.ts';
import { ScriptedPermit } from './scripted-permit.ts';

const path = '/api/v1/persistentvolumes/v';
const off = { controller: { addFinalizer: false } };
const on = { controller: { addFinalizer: true } };

/** Volume `v` before a controller that runs until there is nothing to do any more. */
async function once(
  options: { addFinalizer: boolean; phase?: string; volume?: VolumeSketch; before?: (rig: Rig) => void },
  check: (rig: Rig) => void,
): Promise<void> {
  const { addFinalizer, phase = 'Released', volume, before } = options;
  await using rig = await Rig.prepare({ controller: { addFinalizer } });
  rig.addVolume('v', phase, volume);
  before?.(rig);
  await rig.start();
  await rig.settle(); // the changes of our own come back
  await rig.settle();
  await rig.stop();
  check(rig);
}

function assertNothing(rig: Rig): void {
  assert.deepEqual(rig.provisioner.deletions, []);
  assert.deepEqual(rig.writes, []);
  assert.deepEqual(rig.events, []);
  assert.deepEqual(rig.metrics.totals, {});
  assert.ok(rig.volume('v'));
}

describe('deleting released volumes, finalizers off', () => {
  for (const { title, volume = {} } of [
    { title: 'a released volume of ours is deleted, storage first' },
    {
      title: 'a released volume of an in-tree plugin that was migrated to us is deleted',
      volume: { annotations: { [annotation.provisionedBy]: 'in-tree', [annotation.migratedTo]: 'drv' } },
    },
    { title: 'a released static volume of our driver is deleted', volume: { annotations: {} } },
  ] satisfies { title: string; volume?: VolumeSketch }[]) {
    test(title, async () => {
      await once({ addFinalizer: false, volume }, (rig) => {
        assert.deepEqual(
          rig.provisioner.deletions.map(({ metadata }) => metadata.name),
          ['v'],
        );
        assert.deepEqual(rig.writes, [`DELETE ${path}`]);
        const preconditions = { uid: rig.provisioner.deletions[0]?.metadata.uid };
        assert.deepEqual(rig.wire.writes[0]?.body, { kind: 'DeleteOptions', apiVersion: 'v1', preconditions });
        assert.equal(rig.volume('v'), undefined);
        assert.deepEqual(rig.metrics.totals, { dt: 1 });
        assert.deepEqual(rig.metrics.counted[0]?.labels, { class: 'c1' });
        assert.deepEqual(rig.events, []);
      });
    });
  }

  test('storage is deleted before the object', async () => {
    await using rig = await Rig.prepare(off);
    rig.addVolume('v', 'Released');
    const writesThen: string[][] = [];
    rig.provisioner.deleteSteps.push(() => void writesThen.push(rig.writes));
    await rig.start();
    assert.deepEqual(writesThen, [[]]);
    assert.equal(rig.volume('v'), undefined);
  });

  const untouched: { title: string; phase?: string; volume?: VolumeSketch }[] = [
    {
      title: 'a volume of others is left alone',
      volume: { annotations: { [annotation.provisionedBy]: 'other' } },
    },
    { title: 'a bound volume is left alone', phase: 'Bound' },
    { title: 'an available volume is left alone', phase: 'Available' },
    { title: 'a failed volume is left alone', phase: 'Failed' },
    {
      title: 'a volume that is to be kept is left alone',
      volume: { spec: { persistentVolumeReclaimPolicy: 'Retain' } },
    },
    {
      title: 'a volume that is being deleted already is left alone',
      volume: { finalizers: [pvProtection], terminating: true },
    },
  ];
  for (const { title, ...options } of untouched) {
    test(title, async () => {
      await once({ addFinalizer: false, ...options }, assertNothing);
    });
  }
});

describe('deleting released volumes, finalizers on', () => {
  for (const { title, volume, patch, after } of [
    {
      title: 'storage, object and finalizer go, each by one request',
      volume: { finalizers: [F] },
      patch: { finalizers: null },
      after: undefined,
    },
    {
      title: 'the finalizers of others stay, and so does the volume, without a second round',
      volume: { finalizers: [F, pvProtection] },
      patch: { '$deleteFromPrimitiveList/finalizers': [F], '$setElementOrder/finalizers': [pvProtection] },
      after: [pvProtection],
    },
    {
      title: 'a volume that somebody deleted already is finished the same way',
      volume: { finalizers: [F], terminating: true },
      patch: { finalizers: null },
      after: undefined,
    },
  ] satisfies { title: string; volume: VolumeSketch; patch: object; after: string[] | undefined }[]) {
    test(title, async () => {
      await once({ addFinalizer: true, volume }, (rig) => {
        assert.equal(rig.provisioner.deletions.length, 1);
        assert.deepEqual(rig.writes, [`DELETE ${path}`, `PATCH ${path}`]);
        assert.deepEqual(rig.wire.writes[1]?.body, { metadata: patch });
        assert.deepEqual(rig.volume('v')?.metadata.finalizers, after);
        assert.deepEqual(rig.metrics.totals, { dt: 1 });
        assert.deepEqual(rig.events, []);
      });
    });
  }

  test('a volume whose deletion takes its time is still deleted only once', async () => {
    await using rig = await Rig.prepare(on);
    rig.addVolume('v', 'Released', { finalizers: [F, pvProtection] });
    const gate = Promise.withResolvers<undefined>();
    rig.provisioner.deleteSteps.push(() => gate.promise);
    rig.startOnly();
    await rig.until('the call', () => rig.provisioner.deletions.length === 1);
    rig.touchVolume('v');
    const settled = rig.settle();
    await rig.until('the change in the queue', () => rig.controller.queueLengths.volumes === 2);
    gate.resolve(undefined);
    await settled;
    await rig.synced('v', 2);
    rig.touchVolume('v');
    await rig.settle();
    await rig.stop();
    assert.equal(rig.provisioner.deletions.length, 1);
    assert.deepEqual(rig.writes, [`DELETE ${path}`, `PATCH ${path}`]);
    assert.deepEqual(rig.metrics.totals, { dt: 1 });
  });

  test('a new volume of the same name is deleted anew', async () => {
    await using rig = await Rig.prepare(on);
    rig.addVolume('v', 'Released', { finalizers: [F] });
    await rig.start();
    await rig.until('the end of the first', () => rig.volume('v') === undefined);
    rig.addVolume('v', 'Released', { finalizers: [F] });
    await rig.until('the end of the second', () => rig.volume('v') === undefined);
    await rig.settle();
    assert.equal(rig.provisioner.deletions.length, 2);
    assert.deepEqual(rig.metrics.totals, { dt: 2 });
  });

  test('a new volume of the same name is deleted anew although it replaced the first during an outage of the watch', async () => {
    await using rig = await Rig.prepare({ ...on, api: { port: await freePort() } });
    rig.addVolume('v', 'Released', { finalizers: [F, pvProtection] });
    await rig.start();
    await rig.until('the end of the storage', () => rig.writes.length === 2);
    await rig.server.close();
    rig.setFinalizers('v', []);
    assert.equal(rig.volume('v'), undefined);
    rig.addVolume('v', 'Released', { finalizers: [F] });
    rig.server.compact();
    await rig.server.start();
    await rig.until('the end of the second', () => rig.volume('v') === undefined);
    assert.equal(rig.provisioner.deletions.length, 2);
    assert.notEqual(rig.provisioner.deletions[0]?.metadata.uid, rig.provisioner.deletions[1]?.metadata.uid);
  });

  test('another volume that has the name by the time that the storage is deleted stays, with its finalizers', async () => {
    await using rig = await Rig.prepare(on);
    rig.addVolume('v', 'Released', { finalizers: [F] });
    rig.provisioner.deleteSteps.push(() => {
      rig.setFinalizers('v', []);
      rig.api.delete(resource.volumes, { name: 'v' });
      rig.addVolume('v', 'Bound', { finalizers: [F], spec: { csi: { driver: 'drv', volumeHandle: 'restored' } } });
    });
    await rig.start();
    await rig.settle();
    assert.equal(rig.provisioner.deletions.length, 1);
    assert.equal(rig.volume('v')?.metadata.deletionTimestamp, undefined);
    assert.deepEqual(rig.volume('v')?.metadata.finalizers, [F]);
    assert.deepEqual(rig.events, []);
  });

  test('a conflict that is not about the UID is a failure of the deletion', async () => {
    await using rig = await Rig.prepare(on);
    rig.addVolume('v', 'Released', { finalizers: [F] });
    const action = { type: 'status', code: 409, reason: 'Conflict', message: 'admission webhook denied it' } as const;
    rig.fault({ match: { verb: 'delete', resource: 'persistentvolumes' }, action, times: 1 });
    await rig.start();
    await rig.until('the end of the sync', () => rig.log.some(({ message }) => message.includes('Storage deleted')));
    await rig.settle();
    assert.ok(rig.log.some(({ message }) => message === 'Error syncing volume, trying again'));
  });

  test('our finalizer is taken off even when it came during the deletion', async () => {
    await using rig = await Rig.prepare(on);
    rig.addVolume('v', 'Released');
    rig.provisioner.deleteSteps.push(() => rig.setFinalizers('v', [F]));
    await rig.start();
    await rig.until('the volume to go', () => rig.volume('v') === undefined);
    await rig.stop();
    assert.equal(rig.provisioner.deletions.length, 1);
    assert.deepEqual(rig.writes, [`DELETE ${path}`, `PATCH ${path}`]);
    assert.deepEqual(rig.metrics.totals, { dt: 1 });
  });

  test('a volume that is being deleted without our finalizer was seen to before', async () => {
    await once({ addFinalizer: true, volume: { finalizers: [pvProtection], terminating: true } }, assertNothing);
  });

  for (const { title, finalizers, left } of [
    { title: 'a volume from before the finalizer is deleted without a patch', finalizers: [], left: false },
    {
      title: 'a volume from before the finalizer that others hold is deleted once, without a patch',
      finalizers: [pvProtection],
      left: true,
    },
  ]) {
    test(title, async () => {
      await once({ addFinalizer: true, volume: { finalizers } }, (rig) => {
        assert.equal(rig.provisioner.deletions.length, 1);
        assert.deepEqual(rig.writes, [`DELETE ${path}`]);
        assert.equal(rig.volume('v') !== undefined, left);
        assert.deepEqual(rig.metrics.totals, { dt: 1 });
      });
    });
  }
});

describe('deletions that fail', () => {
  test('a failure is an event of the volume and tried again', async () => {
    await using rig = await Rig.prepare(off);
    rig.addVolume('v', 'Released');
    rig.provisioner.deleteSteps.push(new Error('busy'), new Error('busy'));
    await rig.start();
    for (const sync of [2, 3]) {
      rig.controller.wakeVolume('v');
      await rig.synced('v', sync);
    }
    await rig.stop();
    assert.deepEqual(
      rig.limiter
        .syncs('v')
        .slice(0, 3)
        .map(({ end }) => end),
      ['retry', 'retry', 'done'],
    );
    assert.equal(rig.provisioner.deletions.length, 3);
    assert.deepEqual(rig.writes, [`DELETE ${path}`]);
    assert.deepEqual(rig.events, [
      { type: 'Warning', reason: 'VolumeFailedDelete', message: 'busy', count: 2, object: 'v' },
    ]);
    assert.deepEqual(
      rig.api.list(resource.events).map(({ metadata }) => metadata.namespace),
      ['default'],
    );
    assert.deepEqual(rig.metrics.totals, { df: 2, dt: 1 });
  });

  test('a volume that is in use is no failure: a Normal event with the reason, and it is tried again', async () => {
    await using rig = await Rig.prepare(off);
    rig.addVolume('v', 'Released');
    const reason = 'snapshot s of it is still being copied';
    rig.provisioner.deleteSteps.push(new VolumeInUseError(reason), new VolumeInUseError(reason));
    await rig.start();
    for (const sync of [2, 3]) {
      rig.controller.wakeVolume('v');
      await rig.synced('v', sync);
    }
    await rig.stop();
    const ends = rig.limiter.syncs('v').map(({ end }) => end);
    assert.deepEqual(ends.slice(0, 3), ['retry', 'retry', 'done']);
    assert.deepEqual(rig.events, [{ type: 'Normal', reason: 'VolumeDelete', message: reason, count: 2, object: 'v' }]);
    assert.deepEqual(rig.metrics.totals, { dt: 1 });
    assert.deepEqual(rig.writes, [`DELETE ${path}`]);
  });

  test('an error that wraps one about a volume in use is a failure', async () => {
    const before = (rig: Rig): void => {
      rig.provisioner.otherwiseDelete = new Error('no', { cause: new VolumeInUseError('in use') });
    };
    await once({ addFinalizer: false, before }, (rig) => {
      const texts = rig.events.map(({ type, reason, message }) => `${type} ${reason} ${message}`);
      assert.deepEqual(texts, ['Warning VolumeFailedDelete no']);
      assert.deepEqual(rig.metrics.totals, { df: 1 });
    });
  });

  for (const error of [new Error('busy'), new VolumeInUseError('in use')]) {
    test(`after as many attempts as the threshold allows nothing is tried again: ${error.name}`, async () => {
      await using rig = await Rig.prepare({ controller: { addFinalizer: false, failedDeleteThreshold: 1 } });
      rig.addVolume('v', 'Released');
      rig.provisioner.otherwiseDelete = error;
      await rig.start();
      rig.controller.wakeVolume('v');
      await rig.until('giving up', () => rig.log.some(({ message }) => message.includes('giving up')));
      await rig.stop();
      assert.equal(rig.provisioner.deletions.length, 2);
      const said = rig.log.map(({ message }) => message).filter((message) => message.startsWith('Error syncing'));
      assert.deepEqual(said, [
        'Error syncing volume, trying again',
        'Error syncing volume, giving up until it changes',
      ]);
    });
  }

  test('the volume and its finalizer stay as long as its storage does', async () => {
    const before = (rig: Rig): void => {
      rig.provisioner.otherwiseDelete = new Error('busy');
    };
    await once({ addFinalizer: true, volume: { finalizers: [F, pvProtection] }, before }, (rig) => {
      assert.deepEqual(rig.writes, []);
      assert.deepEqual(rig.volume('v')?.metadata.finalizers, [F, pvProtection]);
      assert.equal(rig.volume('v')?.metadata.deletionTimestamp, undefined);
      assert.equal(rig.limiter.syncs('v')[0]?.end, 'retry');
      assert.deepEqual(rig.metrics.totals, { df: 1 });
    });
  });

  test('an ignored volume is left alone and counts as done', async () => {
    const before = (rig: Rig): void => {
      rig.provisioner.otherwiseDelete = new IgnoredError('not mine');
    };
    await once({ addFinalizer: true, volume: { finalizers: [F] }, before }, (rig) => {
      assert.deepEqual(rig.writes, []);
      assert.deepEqual(rig.events, []);
      assert.deepEqual(rig.metrics.totals, { dt: 1 });
      assert.deepEqual(rig.limiter.syncs('v'), [{ end: 'done' }]);
    });
  });

  for (const { code, reason } of [
    { code: 403, reason: 'Forbidden' },
    { code: 404, reason: 'NotFound' },
    { code: 500, reason: 'InternalError' },
  ]) {
    test(`when the object cannot be deleted (${code}) all of it is repeated, and a rejection is recorded`, async () => {
      await using rig = await Rig.prepare(on);
      rig.addVolume('v', 'Released', { finalizers: [F] });
      rig.refuse('delete', 'persistentvolumes', { code, reason, message: 'no', times: 2 });
      await rig.start();
      rig.controller.wakeVolume('v');
      await rig.synced('v', 2);
      assert.deepEqual(rig.metrics.totals, { df: 2 });
      assert.deepEqual(
        rig.limiter.syncs('v').map(({ end }) => end),
        ['retry', 'retry'],
      );
      rig.controller.wakeVolume('v');
      await rig.synced('v', 3);
      await rig.stop();
      assert.equal(rig.provisioner.deletions.length, 3);
      assert.deepEqual(rig.writes, [`DELETE ${path}`, `DELETE ${path}`, `DELETE ${path}`, `PATCH ${path}`]);
      const recorded = rig.events.map(({ reason, message }) => `${reason}: ${message}`);
      const rejection = 'VolumeFailedDelete: The storage is deleted, and the PersistentVolume cannot be: no';
      assert.deepEqual(recorded, code === 403 ? [rejection] : []);
      assert.deepEqual(rig.metrics.totals, { df: 2, dt: 1 });
    });
  }

  test('a volume that went before the last patch is no failure', async () => {
    const before = (rig: Rig): void => {
      rig.refuse('patch', 'persistentvolumes', { code: 404, reason: 'NotFound', message: 'gone', times: 1 });
    };
    await once({ addFinalizer: true, volume: { finalizers: [F] }, before }, (rig) => {
      assert.equal(rig.provisioner.deletions.length, 1);
      assert.deepEqual(rig.writes, [`DELETE ${path}`, `PATCH ${path}`]);
      assert.deepEqual(rig.metrics.totals, { dt: 1 });
      const ends = rig.limiter.syncs('v').map(({ end }) => end);
      assert.deepEqual([...new Set(ends)], ['done']);
    });
  });

  test('when the last patch is refused all of it is repeated, and that is recorded', async () => {
    await using rig = await Rig.prepare(on);
    rig.addVolume('v', 'Released', { finalizers: [F] });
    rig.refuse('patch', 'persistentvolumes', { code: 403, reason: 'Forbidden', message: 'no', times: 1 });
    await rig.start();
    await rig.until('the volume to go', () => rig.volume('v') === undefined); // the DELETE's own event wakes it
    await rig.settle();
    await rig.stop();
    assert.equal(rig.limiter.syncs('v')[0]?.end, 'retry');
    assert.equal(rig.provisioner.deletions.length, 2);
    assert.deepEqual(rig.writes, [`DELETE ${path}`, `PATCH ${path}`, `DELETE ${path}`, `PATCH ${path}`]);
    assert.match(rig.events[0]?.message ?? '', /^The storage is deleted, .* failed to modify finalizers to \[\]/);
    assert.equal(rig.events.length, 1);
    assert.deepEqual(rig.metrics.totals, { df: 1, dt: 1 });
  });

  for (const { title, change } of [
    {
      title: 'is to be kept',
      change: (rig: Rig) => {
        const volume = structuredClone(rig.api.get(resource.volumes, { name: 'v' }))!;
        Object.assign(volume['spec'] as object, { persistentVolumeReclaimPolicy: 'Retain' });
        rig.api.update(resource.volumes, volume);
      },
    },
    {
      title: 'was recreated',
      change: (rig: Rig) => {
        rig.api.delete(resource.volumes, { name: 'v' });
        rig.addVolume('v', 'Released');
      },
    },
  ]) {
    test(`a deletion is not repeated once the volume ${title}, although the watch does not show it`, async () => {
      await using rig = await Rig.prepare(off);
      rig.addVolume('v', 'Released');
      rig.provisioner.deleteSteps.push(new Error('busy'));
      const match = { resource: 'persistentvolumes', watch: true };
      rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
      const stalled = rig.fault({ match, action: { type: 'watchStall' } });
      rig.startOnly();
      await rig.synced('v');
      await rig.until('the silent watch', () => stalled.hits === 1);
      change(rig);
      rig.controller.wakeVolume('v');
      await rig.synced('v', 2);
      assert.equal(rig.provisioner.deletions.length, 1);
      assert.deepEqual(rig.writes, []);
    });

    test(`nothing is deleted when the process goes on after a pause in which the volume ${title}`, async () => {
      const permit = new ScriptedPermit();
      await using rig = await Rig.prepare({ controller: { addFinalizer: false, permit } });
      rig.addVolume('v', 'Released');
      const former = rig.volume('v')?.metadata.uid;
      permit.lose(() => change(rig));
      rig.startOnly();
      await rig.until('the event', () =>
        rig.events.some(({ message }) => message.includes('since it was read from the cache')),
      );
      assert.ok(!rig.provisioner.deletions.some(({ metadata: { uid } }) => uid === former));
    });
  }

  for (const { title, secondsAgo, deletions } of [
    { title: 'read live first, and kept, where it was released some time ago', secondsAgo: 5, deletions: 0 },
    { title: 'deleted at once where it was released just now', secondsAgo: 0, deletions: 1 },
  ]) {
    test(`a volume that somebody has set to Retain since, which no event shows yet, is ${title}`, async () => {
      const retain = (): void => {
        const volume = structuredClone(rig.api.get(resource.volumes, { name: 'v' }))!;
        Object.assign(volume['spec'] as object, { persistentVolumeReclaimPolicy: 'Retain' });
        rig.api.update(resource.volumes, volume);
      };
      const shouldDelete = ({ status }: PersistentVolume): boolean => {
        if (status?.phase === 'Released') retain();
        return true;
      };
      await using rig = await Rig.prepare({ ...off, methods: { shouldDelete } });
      rig.addVolume('v', 'Bound');
      await rig.start();
      const volume = structuredClone(rig.api.get(resource.volumes, { name: 'v' }))!;
      const lastPhaseTransitionTime = new Date(Date.now() - secondsAgo * 1000).toISOString().replace(/\.\d+Z$/, 'Z');
      rig.api.updateStatus(resource.volumes, { ...volume, status: { phase: 'Released', lastPhaseTransitionTime } });
      await rig.settle();
      assert.equal(rig.provisioner.deletions.length, deletions);
    });
  }

  test('a deletion is not repeated while nobody can say whether the volume is to be kept', async () => {
    await using rig = await Rig.prepare(off);
    rig.addVolume('v', 'Released');
    rig.provisioner.deleteSteps.push(new Error('busy'));
    await rig.start();
    const unread = rig.refuse('list', 'persistentvolumes', { code: 500, reason: 'InternalError', message: 'no' });
    rig.controller.wakeVolume('v');
    await rig.synced('v', 2);
    assert.equal(rig.provisioner.deletions.length, 1);
    assert.equal(rig.limiter.syncs('v')[1]?.end, 'retry');
    unread.remove();
    rig.controller.wakeVolume('v');
    await rig.until('the volume to go', () => rig.volume('v') === undefined);
    assert.equal(rig.provisioner.deletions.length, 2);
  });

  test('a volume that goes by itself ends the tries and their count', async () => {
    const clock = new ManualClock();
    await using rig = await Rig.prepare({ clock, ...off });
    rig.addVolume('v', 'Released');
    rig.provisioner.otherwiseDelete = new Error('busy');
    await rig.start();
    assert.equal(rig.limiter.failures('v'), 1);
    rig.api.delete(resource.volumes, { name: 'v' });
    await rig.settle();
    assert.equal(rig.limiter.failures('v'), 0);
    const syncs = rig.limiter.syncs('v').length;
    await clock.advance(rig.limiter.delays('v')[0] ?? NaN);
    await rig.synced('v', syncs + 1);
    assert.deepEqual(rig.limiter.syncs('v').at(-1), { end: 'done' });
    assert.equal(rig.provisioner.deletions.length, 1);
  });

  for (const { event, options, act } of [
    { event: 'it changes', options: {}, act: (rig: Rig) => rig.touchVolume('v') },
    { event: 'the next resync', options: { resyncMs: 1000 }, act: () => undefined },
  ]) {
    test(`after one retry in vain a volume is left alone until ${event}`, async () => {
      const clock = new ManualClock();
      await using rig = await Rig.prepare({ clock, controller: { failedDeleteThreshold: 1, ...options } });
      rig.addVolume('v', 'Released');
      rig.provisioner.otherwiseDelete = new Error('busy');
      const calls = (): number => rig.provisioner.deletions.length;
      await rig.start();
      await clock.advance(rig.limiter.delays('v')[0] ?? NaN);
      await rig.until('the second call', () => calls() >= 2);
      await rig.settle();
      const before = calls();
      if (options.resyncMs === undefined) assert.equal(before, 2);
      act(rig);
      await rig.until('a further call', () => calls() > before);
      assert.equal(rig.limiter.failures('v'), 1);
    });
  }
});

describe('the deletion guard', () => {
  test('the deletion guard keeps a released volume', async () => {
    await using rig = await Rig.prepare({ methods: { shouldDelete: () => false } });
    rig.addVolume('v', 'Released');
    await rig.start();
    await rig.stop();
    assertNothing(rig);
    assert.deepEqual(rig.limiter.syncs('v'), [{ end: 'done' }]);
  });

  test('the deletion guard is asked about volumes that are to be deleted, and about no others', async () => {
    const asked: string[] = [];
    await using rig = await Rig.prepare({
      methods: { shouldDelete: ({ metadata: { name } }) => asked.push(name) < 0 },
    });
    rig.addVolume('bound', 'Bound');
    rig.addVolume('v', 'Released');
    rig.addVolume('foreign', 'Released', { annotations: { [annotation.provisionedBy]: 'other' } });
    await rig.start();
    await rig.stop();
    assert.deepEqual(asked, ['v']);
    assertNothing(rig);
  });
});
