import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/rate-limiter.ts';
import { IgnoredError, ProvisionError } from '../../../src/provision/provisioner.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { annotation, F, pvProtection, Rig, type RigOptions } from './rig.ts';
import { madeVolume } from './scripted-provisioner.ts';

/** Rig with class `c1` and a claim `ns/a` that goes at once if deleted. */
async function scene(options: RigOptions = {}): Promise<{ rig: Rig; uid: string }> {
  const rig = await Rig.prepare(options);
  rig.addClass();
  const { uid } = rig.addClaim('a', { finalizers: [] }).metadata;
  return { rig, uid };
}

const post = 'POST /api/v1/persistentvolumes';
const boom = { code: 500, reason: 'InternalError', message: 'boom' };

describe('saving a volume', () => {
  test('case 61: a volume that is there already counts as saved', async () => {
    const { rig } = await scene();
    await using _rig = rig;
    rig.addVolume('taken', 'Available', { annotations: {}, spec: { nfs: { server: 's', path: '/p' } } });
    rig.provisioner.provisionSteps.push(() => madeVolume('taken'));
    await rig.start();
    await rig.stop();
    assert.deepEqual(rig.writes, [post]);
    assert.ok(
      rig.volumes.every(({ spec }) => spec.claimRef === undefined),
      'the stored volume is left as it was',
    );
    assert.deepEqual(
      rig.events.map(({ reason, message }) => [reason, message]),
      [
        ['Provisioning', 'External provisioner is provisioning volume for claim "ns/a"'],
        ['ProvisioningSucceeded', 'Successfully provisioned volume taken'],
      ],
    );
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  test('case 61: a volume whose first answer was lost is not made a second time', async () => {
    const { rig } = await scene();
    await using _rig = rig;
    rig.fault({ match: { verb: 'create', resource: 'persistentvolumes' }, action: { type: 'dropAfter' }, times: 1 });
    await rig.start();
    await rig.stop();
    assert.deepEqual(rig.writes, [post, post]);
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.equal(rig.volumes.length, 1);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  test('case 69: with the option on, the volume carries our finalizer from the start', async () => {
    const { rig } = await scene({ controller: { addFinalizer: true } });
    await using _rig = rig;
    await rig.start();
    assert.deepEqual(rig.wire.writes[0]?.body.metadata.finalizers, [F]);
    assert.deepEqual(rig.volumes[0]?.metadata.finalizers, [F, pvProtection]);
  });

  test('case 70: a finalizer that the provisioner set itself is not doubled', async () => {
    const { rig, uid } = await scene({ controller: { addFinalizer: true } });
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(() => ({
      ...madeVolume(`pvc-${uid}`),
      metadata: { name: `pvc-${uid}`, finalizers: [F, 'x/y'] },
    }));
    await rig.start();
    assert.deepEqual(rig.wire.writes[0]?.body.metadata.finalizers, [F, 'x/y']);
  });

  test('case 71: class name, claim and author of a volume are the controller’s to say, the rest is kept', async () => {
    const { rig, uid } = await scene();
    await using _rig = rig;
    const spec = {
      storageClassName: 'wrong',
      claimRef: { kind: 'X', namespace: 'y', name: 'z', uid: 'wrong' },
      mountOptions: ['ro'],
      persistentVolumeReclaimPolicy: 'Retain',
    };
    const annotations = { [annotation.provisionedBy]: 'wrong', mine: 'kept' };
    rig.provisioner.provisionSteps.push(() => ({
      ...madeVolume('v', spec),
      metadata: { name: 'v', labels: { mine: 'kept' }, annotations },
    }));
    await rig.start();
    const { body } = rig.wire.onlyWrite;
    assert.deepEqual(body.metadata, {
      name: 'v',
      labels: { mine: 'kept' },
      annotations: { [annotation.provisionedBy]: 'drv', mine: 'kept' },
    });
    assert.equal(body.spec.storageClassName, 'c1');
    assert.equal(body.spec.claimRef?.uid, uid);
    assert.equal(body.spec.claimRef.name, 'a');
    assert.deepEqual(body.spec.mountOptions, ['ro']);
    assert.equal(body.spec.persistentVolumeReclaimPolicy, 'Retain');
    assert.deepEqual(body.spec.csi, { driver: 'drv', volumeHandle: 'handle-v' });
  });
});

describe('the blocking store', () => {
  test('case 62: a volume that is saved at the last of three tries is a success', async () => {
    const { rig } = await scene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 2 });
    await rig.start();
    await rig.stop();
    assert.deepEqual(rig.writes, [post, post, post]);
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  test('case 62: the pause lies between the tries, none follows the last', async () => {
    const clock = new ManualClock();
    const { rig, uid } = await scene({
      clock,
      controller: { save: { kind: 'blocking' }, failedProvisionThreshold: 0 },
    });
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', boom);
    rig.startOnly();
    for (let tries = 1; tries <= 4; tries++) {
      await rig.until(`try ${tries}`, () => rig.unsavedLines === tries);
      await clock.advance(9999);
      assert.equal(rig.writes.length, tries);
      await clock.advance(1);
    }
    await rig.turn(uid);
    assert.equal(rig.writes.length, 5);
    assert.equal(clock.monotonicMs(), 40_000);
  });

  test('case 63: a volume that cannot be saved is deleted again, and the claim tried later', async () => {
    const { rig, uid } = await scene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', boom);
    await rig.start();
    await rig.stop();
    assert.deepEqual(rig.writes, [post, post, post]);
    assert.deepEqual(
      rig.events.map(({ type, reason, message }) => [type, reason, message]),
      [
        ['Normal', 'Provisioning', 'External provisioner is provisioning volume for claim "ns/a"'],
        [
          'Warning',
          'ProvisioningFailed',
          'Error creating provisioned PV object for claim ns/a: boom. Deleting the volume.',
        ],
      ],
    );
    const [deleted, ...more] = rig.provisioner.deletions;
    assert.deepEqual(more, []);
    assert.equal(deleted?.spec.claimRef?.uid, uid);
    assert.deepEqual(deleted.metadata.annotations, { [annotation.provisionedBy]: 'drv' });
    assert.equal(deleted.spec.storageClassName, 'c1');
    assert.deepEqual(rig.metrics.totals, { pf: 1 });
    assert.equal(rig.limiter.turns(uid)[0]?.end, 'retry');
  });

  test('case 63: after that nothing goes on in the background, so a deleted claim is forgotten', async () => {
    const clock = new ManualClock();
    const save = { kind: 'blocking', attempts: 1 } as const;
    const { rig, uid } = await scene({ clock, controller: { save } });
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', boom);
    rig.provisioner.provisionSteps.push(new ProvisionError('slow', { state: 'in-background' }));
    await rig.start();
    await clock.advance(rig.limiter.delays(uid)[0] ?? NaN);
    await rig.turn(uid, 2);
    rig.deleteClaim();
    await rig.settle();
    await clock.advance(rig.limiter.delays(uid)[1] ?? NaN);
    await rig.turn(uid, 3);
    assert.deepEqual(rig.limiter.turns(uid).at(-1), { end: 'done' });
    assert.equal(rig.provisioner.provisions.length, 2);
    assert.equal(rig.provisioner.deletions.length, 1);
  });

  for (const { title, step, text } of [
    {
      title: 'case 64: storage that cannot be deleted either is reported',
      step: new Error('stuck'),
      text: 'stuck',
    },
    {
      title: 'case 65: here, too, an ignored deletion is one that failed',
      step: new IgnoredError('not mine'),
      text: 'ignored because not mine',
    },
  ]) {
    test(title, async () => {
      const { rig, uid } = await scene();
      await using _rig = rig;
      rig.refuse('create', 'persistentvolumes', boom);
      rig.provisioner.otherwiseDelete = step;
      await rig.start();
      await rig.stop();
      assert.equal(rig.provisioner.deletions.length, 3);
      assert.deepEqual(
        rig.events.slice(1).map(({ type, reason, message }) => [type, reason, message]),
        [
          [
            'Warning',
            'ProvisioningFailed',
            'Error creating provisioned PV object for claim ns/a: boom. Deleting the volume.',
          ],
          [
            'Warning',
            'ProvisioningCleanupFailed',
            `Error cleaning provisioned volume for claim ns/a: ${text}. Please delete manually.`,
          ],
        ],
      );
      assert.deepEqual(rig.metrics.totals, { pf: 1 });
      assert.equal(rig.limiter.turns(uid)[0]?.end, 'retry');
    });
  }
});

describe('the queue store', () => {
  async function queueScene(): Promise<{ rig: Rig; clock: ManualClock; uid: string }> {
    const clock = new ManualClock();
    const limiter = new ExponentialLimiter({ baseMs: 5, maxMs: 1_000_000 });
    return { ...(await scene({ clock, controller: { save: { kind: 'queue', limiter } } })), clock };
  }

  test('case 66: a volume is saved in the background, at 0, 0, 5, 15, 35 and 75 ms', async () => {
    const { rig, clock, uid } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 5 });
    await rig.start();
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
    assert.deepEqual(rig.limiter.turns(uid), [{ end: 'done' }]);
    let tries = 2;
    for (const pauseMs of [5, 10, 20, 40]) {
      await rig.until(`try ${tries} to fail`, () => rig.unsavedLines === tries);
      await clock.advance(pauseMs - 1);
      await rig.settle();
      assert.equal(rig.writes.length, tries);
      await clock.advance(1);
      tries++;
      await rig.until(`try ${tries}`, () => rig.writes.length === tries);
    }
    await rig.until('the volume', () => rig.volumes.length === 1);
    await rig.stop();
    assert.equal(rig.writes.length, 6);
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.provisioner.deletions, []);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
    assert.equal(rig.events.at(-1)?.count, 1);
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  test('case 67: the volume of a deleted claim is saved without an event', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 2 });
    await rig.start();
    await rig.until('the second try to fail', () => rig.unsavedLines === 2);
    rig.deleteClaim();
    await rig.settle();
    await clock.advance(5);
    await rig.until('the volume', () => rig.volumes.length === 1);
    await rig.settle();
    await clock.advance(60_000);
    await rig.stop();
    assert.equal(rig.writes.length, 3, 'saved is saved');
    assert.deepEqual(rig.reasons, ['Provisioning']);
    assert.equal(rig.provisioner.provisions.length, 1);
  });

  test('case 68: a change of the claim while its volume is unsaved provisions it again', async () => {
    const { rig, uid } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 2 });
    await rig.start();
    await rig.until('the second try to fail', () => rig.unsavedLines === 2);
    rig.touchClaim();
    await rig.turn(uid, 2);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 2);
    assert.equal(rig.volumes.length, 1);
    assert.deepEqual(rig.metrics.totals, { pt: 2 });
  });

  test('a volume that is unsaved at a stop is saved before the end', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 3 });
    await rig.start();
    await rig.until('the second try to fail', () => rig.unsavedLines === 2);
    const stopped = rig.stop();
    await clock.advance(5);
    await rig.until('the third try to fail', () => rig.unsavedLines === 3);
    await clock.advance(10);
    await stopped;
    assert.equal(rig.volumes.length, 1);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
  });
});
