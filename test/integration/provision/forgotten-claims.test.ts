/** When a provisioner may forget what it kept for the retries of a claim. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { ProvisionError, type ProvisioningState } from '../../../src/provision/provisioner.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { annotation, resource, Rig } from './rig.ts';
import { madeVolume } from './scripted-provisioner.ts';

const failure = (state: ProvisioningState): ProvisionError => new ProvisionError('no room', { state });

/** Rig with time standing still and a claim `ns/a`; `isForgotten`: `forget` was called with its UID. */
async function scene() {
  const clock = new ManualClock();
  const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 });
  const forgottenUids: string[] = [];
  const methods = { forget: (uid: string): void => void forgottenUids.push(uid) };
  const rig = await Rig.prepare({ clock, limiter, methods });
  rig.addClass();
  const { uid } = rig.addClaim('a', { finalizers: [] }).metadata;
  const passPause = async (): Promise<void> => {
    const syncs = rig.limiter.syncs(uid).length;
    await clock.advance(rig.limiter.delays(uid).at(-1) ?? NaN);
    await rig.synced(uid, syncs + 1);
  };
  return { rig, uid, passPause, isForgotten: () => forgottenUids.includes(uid) };
}

describe('a claim is forgotten', () => {
  for (const state of ['finished', 'no-change', 'reschedule'] as const) {
    test(`as soon as it is deleted, after an attempt that ended as ${state}`, async () => {
      const { rig, isForgotten } = await scene();
      await using _rig = rig;
      rig.provisioner.otherwiseProvision = failure(state);
      await rig.start();
      await rig.settle();
      assert.equal(isForgotten(), false);
      rig.deleteClaim();
      await rig.settle();
      assert.equal(isForgotten(), true);
    });
  }

  test('only after the end of what goes on in the background', async () => {
    const { rig, isForgotten, passPause } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('in-background'), failure('no-change'), failure('in-background'));
    rig.provisioner.otherwiseProvision = failure('finished');
    await rig.start();
    rig.deleteClaim();
    await rig.settle();
    for (const attempts of [2, 3]) {
      await passPause();
      assert.equal(rig.provisioner.provisions.length, attempts);
      assert.equal(isForgotten(), false);
    }
    await passPause(); // finished; nothing brings the claim back but the queue
    await passPause();
    assert.equal(rig.provisioner.provisions.length, 4);
    assert.equal(isForgotten(), true);
  });

  test('only after the attempt that is under way when it is deleted', async () => {
    const { rig, uid, isForgotten } = await scene();
    await using _rig = rig;
    const attempt = Promise.withResolvers<never>();
    rig.provisioner.provisionSteps.push(() => attempt.promise);
    rig.startOnly();
    await rig.until('the attempt', () => rig.provisioner.provisions.length === 1);
    rig.deleteClaim();
    await rig.until('the deletion', () => rig.claimInCache('a') === undefined);
    assert.equal(isForgotten(), false);
    attempt.reject(failure('no-change'));
    await rig.synced(uid);
    assert.equal(isForgotten(), true);
  });

  test('when it has a volume, be it from elsewhere', async () => {
    const { rig, isForgotten } = await scene();
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('no-change');
    await rig.start();
    assert.equal(isForgotten(), false);
    rig.changeClaim('a', {}, { volumeName: 'v' });
    await rig.settle();
    assert.equal(isForgotten(), true);
  });

  test('only after its wait for the binding', async () => {
    const { rig, isForgotten } = await scene();
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = ({ volumeName }) => madeVolume(volumeName);
    await rig.start();
    await rig.settle();
    assert.equal(rig.volumes.length, 1);
    assert.equal(isForgotten(), false);
  });
});

describe('the failures of a claim are forgotten', () => {
  /** Rig whose claim `ns/a` failed twice and was given up. */
  async function givenUp() {
    const clock = new ManualClock();
    const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 });
    const rig = await Rig.prepare({ controller: { failedProvisionThreshold: 1 }, limiter, clock });
    rig.addClass();
    const { uid } = rig.addClaim('a', { finalizers: [] }).metadata;
    rig.provisioner.otherwiseProvision = failure('finished');
    rig.startOnly();
    await rig.synced(uid);
    await clock.until(() => rig.log.some(({ message }) => message.includes('giving up')));
    assert.equal(rig.limiter.failures(uid), 1);
    return { rig, uid };
  }

  test('when it was given up and is deleted', async () => {
    const { rig, uid } = await givenUp();
    await using _rig = rig;
    rig.deleteClaim();
    await rig.settle();
    assert.equal(rig.limiter.failures(uid), 0);
  });

  test('when it was given up and got a volume from elsewhere', async () => {
    const { rig, uid } = await givenUp();
    await using _rig = rig;
    rig.changeClaim('a', {}, { volumeName: 'v' });
    await rig.settle();
    assert.equal(rig.limiter.failures(uid), 0);
  });

  test('when it was given up and went to another provisioner', async () => {
    const { rig, uid } = await givenUp();
    await using _rig = rig;
    rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'other' } });
    await rig.settle();
    assert.equal(rig.limiter.failures(uid), 0);
  });

  test('when it is deleted during the attempt after which it is given up', async () => {
    const { rig, uid } = await givenUp();
    await using _rig = rig;
    const attempt = Promise.withResolvers<never>();
    rig.provisioner.provisionSteps.push(() => attempt.promise);
    const attempts = rig.provisioner.provisions.length;
    rig.touchClaim();
    await rig.until('another attempt', () => rig.provisioner.provisions.length > attempts);
    rig.deleteClaim();
    await rig.until('the deletion', () => rig.claimInCache('a') === undefined);
    attempt.reject(failure('in-background'));
    await rig.settle();
    assert.equal(rig.limiter.failures(uid), 0);
  });
});

describe('the failures of a volume are forgotten', () => {
  for (const { title, change } of [
    { title: 'when it is deleted', change: (rig: Rig) => rig.api.delete(resource.volumes, { name: 'v' }) },
    {
      title: 'when its storage is to be kept after all',
      change: (rig: Rig) => {
        const volume = structuredClone(rig.volume('v'))!;
        volume.spec.persistentVolumeReclaimPolicy = 'Retain';
        return rig.api.update(resource.volumes, volume as never);
      },
    },
  ]) {
    test(title, async () => {
      await using rig = await Rig.prepare({
        controller: { failedDeleteThreshold: 1 },
        limiter: new ExponentialLimiter({ baseMs: 1, maxMs: 1 }),
      });
      rig.addVolume('v', 'Released');
      rig.provisioner.otherwiseDelete = new Error('busy');
      rig.startOnly();
      await rig.until('giving up', () => rig.log.some(({ message }) => message.includes('giving up')));
      assert.equal(rig.limiter.failures('v'), 1);
      change(rig);
      await rig.settle();
      assert.equal(rig.limiter.failures('v'), 0);
    });
  }
});
