import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { BucketLimiter, ExponentialLimiter, MaxOfLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { IgnoredError, ProvisionError, type ProvisioningState } from '../../../src/provision/provisioner.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { annotation, resource, Rig, type RigOptions } from './rig.ts';
import { madeVolume } from './scripted-provisioner.ts';

const failure = (state: ProvisioningState, message = 'no room'): ProvisionError =>
  new ProvisionError(message, { state });

/** Rig with time standing still, back-off from one second, class `c1` and a claim `ns/a` that goes at once if deleted. */
async function scene(options: RigOptions = {}): Promise<{ rig: Rig; clock: ManualClock; uid: string }> {
  const clock = new ManualClock();
  const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 });
  const rig = await Rig.prepare({ clock, limiter, ...options });
  rig.addClass();
  const { uid } = rig.addClaim('a', { finalizers: [] }).metadata;
  return { rig, clock, uid };
}

/** Lets the time of the latest pause of the key pass and waits for the sync that follows. */
async function passPause(rig: Rig, clock: ManualClock, uid: string): Promise<void> {
  const syncs = rig.limiter.syncs(uid).length;
  await clock.advance(rig.limiter.delays(uid).at(-1) ?? NaN);
  await rig.synced(uid, syncs + 1);
}

describe('what a failed attempt leads to', () => {
  test('a failure is an event and a count, and is tried again after pauses that double', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('finished');
    await rig.start();
    for (const pauseMs of [1000, 2000, 4000]) {
      const calls = rig.provisioner.provisions.length;
      assert.equal(rig.limiter.delays(uid).at(-1), pauseMs);
      await clock.advance(pauseMs - 1);
      await rig.settle();
      assert.equal(rig.provisioner.provisions.length, calls);
      const syncs = rig.limiter.syncs(uid).length;
      await clock.advance(1);
      await rig.synced(uid, syncs + 1);
      assert.equal(rig.provisioner.provisions.length, calls + 1);
    }
    await rig.stop();
    assert.deepEqual(rig.metrics.totals, { pf: 4 });
    assert.deepEqual(
      rig.events.map(({ type, reason, message, count }) => ({ type, reason, message, count })),
      [
        {
          type: 'Normal',
          reason: 'Provisioning',
          message: 'External provisioner is provisioning volume for claim "ns/a"',
          count: 4,
        },
        { type: 'Warning', reason: 'ProvisioningFailed', message: 'no room', count: 4 },
      ],
    );
  });

  test('success at the third try ends the failures', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('finished'), failure('finished'));
    await rig.start();
    await passPause(rig, clock, uid);
    await passPause(rig, clock, uid);
    await rig.stop();
    assert.deepEqual(rig.metrics.totals, { pf: 2, pt: 1 });
    assert.deepEqual(rig.limiter.syncs(uid), [
      { end: 'retry', delayMs: 1000 },
      { end: 'retry', delayMs: 2000 },
      { end: 'done' },
    ]);
    assert.equal(rig.limiter.failures(uid), 0);
  });

  test('an attempt that goes on in the background is repeated with the newest claim', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('in-background'), failure('in-background'));
    await rig.start();
    rig.touchClaim('a', 'new');
    await rig.synced(uid, 2);
    await passPause(rig, clock, uid);
    await rig.stop();
    const labels = rig.provisioner.provisions.map(({ claim }) => claim.metadata.labels?.['touched']);
    assert.deepEqual(labels, [undefined, 'new', 'new']);
  });

  test('a deleted claim is provisioned to the end', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(...Array<ProvisionError>(3).fill(failure('in-background')));
    await rig.start();
    const { resourceVersion } = rig.claim()?.metadata ?? {};
    rig.deleteClaim();
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 1, 'the deletion itself wakes nobody');
    for (let call = 2; call <= 4; call++) await passPause(rig, clock, uid);
    await rig.stop();
    const { provisions } = rig.provisioner;
    assert.equal(provisions.length, 4);
    for (const { claim } of provisions) assert.equal(claim, provisions[0]?.claim);
    assert.deepEqual(rig.volumes[0]?.spec.claimRef, {
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      namespace: 'ns',
      name: 'a',
      uid,
      resourceVersion,
    });
    assert.deepEqual(rig.metrics.totals, { pf: 3, pt: 1 });
    assert.deepEqual(rig.reasons, ['ProvisioningFailed', 'Provisioning']);
  });

  for (const { title, steps } of [
    { title: 'after a final failure a deleted claim is forgotten', steps: ['finished'] },
    { title: 'nothing was known and nothing is, so a deleted claim is forgotten', steps: ['no-change'] },
    { title: 'a final failure ends the care for a background attempt', steps: ['in-background', 'finished'] },
  ] satisfies { title: string; steps: ProvisioningState[] }[]) {
    test(title, async () => {
      const { rig, clock, uid } = await scene();
      await using _rig = rig;
      rig.provisioner.provisionSteps.push(...steps.map((state) => failure(state)));
      await rig.start();
      for (let call = 2; call <= steps.length; call++) await passPause(rig, clock, uid);
      rig.deleteClaim();
      await rig.settle();
      await passPause(rig, clock, uid);
      await rig.stop();
      assert.equal(rig.provisioner.provisions.length, steps.length);
      assert.deepEqual(rig.metrics.totals, { pf: steps.length });
      assert.deepEqual(rig.limiter.syncs(uid).at(-1), { end: 'done' });
      assert.ok(rig.log.some(({ message }) => message === 'Claim in work queue no longer exists'));
    });
  }

  test('an attempt that never reached the backend keeps what was known of it', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('in-background'), failure('no-change'));
    await rig.start();
    await passPause(rig, clock, uid);
    rig.deleteClaim();
    await rig.settle();
    await passPause(rig, clock, uid);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 3);
    assert.equal(rig.volumes.length, 1);
  });

  test('a claim that got a volume meanwhile needs no further care', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('in-background'));
    await rig.start();
    rig.changeClaim('a', {}, { volumeName: 'v' });
    await rig.synced(uid, 2);
    rig.deleteClaim();
    await rig.settle();
    await passPause(rig, clock, uid); // the pause of the first sync is still under way
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.limiter.syncs(uid).slice(0, 2), [{ end: 'retry', delayMs: 1000 }, { end: 'done' }]);
    assert.deepEqual(rig.limiter.delays(uid), [1000]);
  });

  test('a claim whose node was taken back needs no further care', async () => {
    const clock = new ManualClock();
    await using rig = await Rig.prepare({ clock });
    rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    const annotations = { [annotation.provisioner]: 'drv', [annotation.node]: 'n1' };
    const { uid } = rig.addClaim('a', { annotations, finalizers: [] }).metadata;
    rig.provisioner.provisionSteps.push(failure('in-background'));
    await rig.start();
    rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv' } });
    await rig.synced(uid, 2);
    rig.deleteClaim();
    await rig.settle();
    await passPause(rig, clock, uid);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.metrics.totals, { pf: 1 });
  });

  test('after two retries in vain a claim is left alone until it changes, then tried once', async () => {
    const { rig, clock, uid } = await scene({ controller: { failedProvisionThreshold: 2 } });
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('finished');
    await rig.start();
    await passPause(rig, clock, uid);
    await clock.advance(2000);
    await rig.until('the third call', () => rig.provisioner.provisions.length === 3);
    await clock.advance(10 * 3_600_000);
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 3);
    rig.touchClaim();
    await rig.settle();
    await clock.advance(10 * 3_600_000);
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 4);
    assert.equal(rig.limiter.failures(uid), 2, 'the failures still count');
    await rig.stop();
    assert.deepEqual(rig.metrics.totals, { pf: 4 });
  });

  test('giving up ends the care for a background attempt', async () => {
    const { rig, clock, uid } = await scene({ controller: { failedProvisionThreshold: 2 } });
    await using _rig = rig;
    const third = Promise.withResolvers<never>();
    third.promise.catch(() => undefined);
    rig.provisioner.provisionSteps.push(failure('in-background'), failure('in-background'), () => third.promise);
    await rig.start();
    await passPause(rig, clock, uid);
    await clock.advance(2000);
    await rig.until('the third call', () => rig.provisioner.provisions.length === 3);
    rig.touchClaim();
    rig.deleteClaim();
    // the watch has shown the change once it shows what was made later
    const written = rig.settle();
    await rig.until('the change', () => rig.controller.queueLengths.claims === 2);
    third.reject(failure('in-background'));
    await written;
    await rig.synced(uid, 3);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 3);
    assert.deepEqual(rig.limiter.syncs(uid).at(-1), { end: 'done' }, 'the changed claim was looked at and not found');
  });

  test('without a threshold the tries never end, and their pauses grow up to the maximum', async () => {
    const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 8000 });
    const { rig, clock, uid } = await scene({ limiter, controller: { failedProvisionThreshold: 0 } });
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('finished');
    await rig.start();
    for (let call = 2; call <= 20; call++) await passPause(rig, clock, uid);
    assert.equal(rig.provisioner.provisions.length, 20);
    assert.deepEqual(rig.limiter.delays(uid), [1000, 2000, 4000, ...Array<number>(17).fill(8000)]);
  });

  test('the default threshold of 15 allows sixteen calls', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('finished');
    await rig.start();
    for (let call = 2; call <= 15; call++) await passPause(rig, clock, uid);
    await clock.advance(rig.limiter.delays(uid).at(-1) ?? NaN);
    await rig.until('call 16', () => rig.provisioner.provisions.length === 16);
    await clock.advance(10 * 3_600_000);
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 16);
  });

  test('an ignored claim is neither tried again nor reported', async () => {
    const { rig, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(new IgnoredError('it is not mine'));
    await rig.start();
    await rig.stop();
    assert.deepEqual(rig.reasons, ['Provisioning']);
    assert.deepEqual(rig.metrics.totals, { pf: 1 });
    assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'done' }]);
  });

  test('an ignored error inside another one is an ordinary failure', async () => {
    const { rig, uid } = await scene();
    await using _rig = rig;
    const cause = new IgnoredError('it is not mine');
    rig.provisioner.provisionSteps.push(new ProvisionError('outer', { state: 'finished', cause }));
    await rig.start();
    await rig.stop();
    assert.deepEqual(
      rig.events.map(({ reason, message }) => [reason, message]),
      [
        ['Provisioning', 'External provisioner is provisioning volume for claim "ns/a"'],
        ['ProvisioningFailed', 'outer'],
      ],
    );
    assert.deepEqual(rig.metrics.totals, { pf: 1 });
    assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'retry', delayMs: 1000 }]);
  });

  test('an error of no known kind is reported as it is and means that the attempt failed and nothing runs', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(new Error('surprise'));
    await rig.start();
    rig.deleteClaim();
    await rig.settle();
    await passPause(rig, clock, uid);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.ok(rig.events.some(({ reason, message }) => reason === 'ProvisioningFailed' && message === 'surprise'));
  });
});

describe('a backend that is back after an outage', () => {
  test('gets the claims that failed meanwhile within a second, and their failures no longer count', async () => {
    const { rig, clock, uid } = await scene({ controller: { failedProvisionThreshold: 0 } });
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(...Array<ProvisionError>(8).fill(failure('no-change', 'away')));
    await rig.start();
    for (let call = 2; call <= 7; call++) await passPause(rig, clock, uid);
    assert.equal(rig.limiter.delays(uid).at(-1), 64_000);
    rig.controller.retryFailed();
    await clock.advance(999);
    await rig.until('the end of another attempt', () => rig.limiter.delays(uid).length === 8);
    assert.equal(rig.limiter.delays(uid).at(-1), 1000, 'the pause after the next failure is the first one');
    assert.equal(rig.provisioner.provisions.length, 8);
  });

  test('gets claims that were infeasible, too: it may have been mended', async () => {
    const { rig, clock } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(new ProvisionError('bad', { state: 'finished', infeasible: true }));
    await rig.start();
    rig.controller.retryFailed();
    await clock.advance(1000);
    await rig.until('the volume', () => rig.volumes.length === 1);
  });

  test('gets the volumes whose deletion failed', async () => {
    const { rig, clock } = await scene();
    await using _rig = rig;
    rig.addVolume('v', 'Released');
    rig.provisioner.deleteSteps.push(new Error('away'));
    await rig.start();
    assert.equal(rig.provisioner.deletions.length, 1);
    rig.controller.retryFailed();
    await clock.advance(1000);
    await rig.until('the end of the volume', () => rig.volume('v') === undefined);
  });
});

describe('a claim that can never succeed', () => {
  const infeasible = (state: ProvisioningState = 'finished'): ProvisionError =>
    new ProvisionError('bad parameter', { state, infeasible: true });

  for (const { title, limiter } of [
    {
      title: 'is called for again after five minutes, with the default back-off',
      limiter: new MaxOfLimiter([
        new ExponentialLimiter({ baseMs: 15_000, maxMs: 1_000_000 }),
        new BucketLimiter({ qps: 10, burst: 100, clock: systemClock }),
      ]),
    },
    {
      title: 'is called for again after five minutes, with the back-off of the CSI flags',
      limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 }),
    },
    {
      title: 'is called for again after five minutes, however short the maximum back-off is',
      limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 1000 }),
    },
  ]) {
    test(title, async () => {
      const { rig, clock } = await scene({
        limiter,
        controller: { failedProvisionThreshold: 0, keepLastErrors: true },
      });
      await using _rig = rig;
      rig.provisioner.provisionSteps.push(infeasible());
      await rig.start();
      await clock.advance(299_999);
      await rig.settle();
      assert.equal(rig.provisioner.provisions.length, 1);
      const { failures, nextTryInMs, step } = rig.controller.status.waitingClaim('ns/a')?.progress ?? {};
      assert.deepEqual({ failures, nextTryInMs, step }, { failures: 1, nextTryInMs: 1, step: 'retrying' });
      await clock.advance(1);
      await rig.until('the volume', () => rig.volumes.length === 1);
      await rig.stop();
      assert.deepEqual(rig.metrics.totals, { pf: 1, pt: 1 }, 'one call has failed');
      assert.equal(rig.log.filter(({ message }) => message === 'Error syncing claim, trying again').length, 1);
      const [failure, ...more] = rig.events.filter(({ type }) => type === 'Warning');
      assert.deepEqual(more, []);
      assert.equal(failure?.count, 1);
      assert.equal(
        failure.message,
        'Volume provisioning failed with infeasible error. Retries will be delayed. bad parameter',
      );
    });
  }

  test('a recreated class ends the wait at once', async () => {
    const { rig } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(infeasible());
    await rig.start();
    rig.api.delete(resource.classes, { name: 'c1' });
    rig.addClass();
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.equal(rig.provisioner.provisions.length, 2);
  });

  test('a look at the claim before its time neither ends the wait nor counts as a failure', async () => {
    const { rig, clock, uid } = await scene({ controller: { keepLastErrors: true } });
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(infeasible());
    await rig.start();
    await clock.advance(100_000);
    for (let look = 0; look < 3; look++) {
      rig.controller.wakeClaim(uid);
      await rig.settle();
    }
    assert.equal(rig.provisioner.provisions.length, 1);
    const { failures, nextTryInMs } = rig.controller.status.waitingClaim('ns/a')?.progress ?? {};
    assert.deepEqual({ failures, nextTryInMs }, { failures: 1, nextTryInMs: 200_000 });
    assert.deepEqual(rig.limiter.delays(uid), [1000]);
    assert.equal(rig.log.filter(({ message }) => message.startsWith('Error syncing claim')).length, 1);
  });

  test('an infeasible claim keeps its node, though the driver asks for another one', async () => {
    const clock = new ManualClock();
    await using rig = await Rig.prepare({ clock });
    rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    const annotations = { [annotation.provisioner]: 'drv', [annotation.node]: 'n1' };
    const { uid } = rig.addClaim('a', { annotations }).metadata;
    rig.provisioner.provisionSteps.push(infeasible('reschedule'));
    await rig.start();
    await passPause(rig, clock, uid);
    await rig.stop();
    assert.deepEqual(rig.writes, ['POST /api/v1/persistentvolumes'], 'one hour later: the second try, no PUT before');
    assert.match(rig.events.find(({ type }) => type === 'Warning')?.message ?? '', /infeasible error/);
    assert.deepEqual(rig.metrics.totals, { pf: 1, pt: 1 });
  });

  test('an infeasible claim is forgotten when it is deleted, even if it was to go on in the background', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('in-background'), infeasible('in-background'));
    await rig.start();
    await passPause(rig, clock, uid);
    rig.deleteClaim();
    await rig.settle();
    await clock.advance(300_000);
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 2);
    assert.deepEqual(rig.limiter.syncs(uid).at(-1), { end: 'done' });
  });
});

describe('another node is wanted', () => {
  async function lateBinding(
    classFields: object = { volumeBindingMode: 'WaitForFirstConsumer' },
  ): Promise<{ rig: Rig; clock: ManualClock; uid: string }> {
    const clock = new ManualClock();
    const rig = await Rig.prepare({ clock });
    rig.addClass('c1', classFields);
    const annotations = { [annotation.provisioner]: 'drv', [annotation.node]: 'n1' };
    const { uid } = rig.addClaim('a', { annotations }).metadata;
    return { rig, clock, uid };
  }
  const path = '/api/v1/namespaces/ns/persistentvolumeclaims/a';

  test('the node is taken off the claim, whole and conditional, and nothing is retried', async () => {
    const { rig, uid } = await lateBinding();
    await using _rig = rig;
    const { resourceVersion } = rig.claim()?.metadata ?? {};
    rig.provisioner.provisionSteps.push(failure('reschedule'));
    await rig.start();
    await rig.synced(uid, 2); // the change of the claim comes back
    await rig.stop();
    assert.deepEqual(rig.writes, [`PUT ${path}`]);
    const { body } = rig.wire.onlyWrite;
    assert.deepEqual(body.metadata.annotations, { [annotation.provisioner]: 'drv' });
    assert.equal(body.metadata.resourceVersion, resourceVersion);
    assert.deepEqual(body.spec, rig.claim()?.spec);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningFailed']);
    assert.deepEqual(rig.metrics.totals, { pf: 1 });
    assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'done' }, { end: 'done' }]);
    assert.equal(rig.provisioner.provisions.length, 1);
  });

  test('when the claim cannot be written the whole attempt is repeated', async () => {
    const { rig, clock, uid } = await lateBinding();
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('reschedule');
    rig.refuse('update', 'persistentvolumeclaims', { code: 409, reason: 'Conflict', message: 'changed', times: 1 });
    await rig.start();
    assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
    await clock.advance(rig.limiter.delays(uid)[0] ?? NaN);
    await rig.synced(uid, 3);
    await rig.stop();
    assert.deepEqual(rig.writes, [`PUT ${path}`, `PUT ${path}`]);
    assert.equal(rig.provisioner.provisions.length, 2);
    assert.deepEqual(rig.metrics.totals, { pf: 2 });
    assert.equal(rig.claim()?.metadata.annotations?.[annotation.node], undefined);
    assert.ok(
      rig.events.every(({ message }) => message !== 'changed'),
      'the provisioner is quoted, not the API',
    );
  });

  test('a node that may not be taken off the claim is an event of its own', async () => {
    const { rig } = await lateBinding();
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('reschedule');
    const message = 'claims are not for you';
    rig.refuse('update', 'persistentvolumeclaims', { code: 403, reason: 'Forbidden', message });
    await rig.start();
    await rig.stop();
    assert.deepEqual(
      rig.events.slice(-1).map(({ type, reason, message: text }) => [type, reason, text]),
      [
        [
          'Warning',
          'ProvisioningFailed',
          `The selected node could not be removed from the claim to have another one selected: ${message}`,
        ],
      ],
    );
  });

  test('without a node on the claim it is an ordinary failure', async () => {
    const { rig, uid } = await scene();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('reschedule'));
    await rig.start();
    await rig.stop();
    assert.deepEqual(rig.writes, []);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningFailed']);
    assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'retry', delayMs: 1000 }]);
    assert.deepEqual(rig.metrics.totals, { pf: 1 });
  });

  test('a claim of an Immediate class loses its node and is tried again at once without one', async () => {
    const { rig, uid } = await lateBinding({});
    await using _rig = rig;
    rig.provisioner.otherwiseProvision = failure('reschedule');
    await rig.start();
    await rig.synced(uid, 2);
    await rig.stop();
    assert.deepEqual(rig.writes, [`PUT ${path}`]);
    assert.deepEqual(
      rig.provisioner.provisions.map(({ selectedNodeName }) => selectedNodeName),
      ['n1', ''],
    );
    assert.deepEqual(
      rig.limiter.syncs(uid).map(({ end }) => end),
      ['done', 'retry'],
    );
    assert.deepEqual(rig.metrics.totals, { pf: 2 });
  });

  test('a claim that the cache still shows with the node taken off is not provisioned there again', async () => {
    const { rig, uid } = await lateBinding();
    await using _rig = rig;
    const match = { resource: 'persistentvolumeclaims', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    rig.fault({ match, action: { type: 'watchStall' } });
    rig.provisioner.provisionSteps.push(failure('reschedule'));
    rig.startOnly();
    await rig.synced(uid);
    assert.deepEqual(rig.writes, [`PUT ${path}`]);
    rig.controller.wakeClaim(uid);
    await rig.synced(uid, 2);
    assert.equal(rig.limiter.syncs(uid)[1]?.end, 'retry');
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.equal(rig.claimInCache('a')?.metadata.annotations?.[annotation.node], 'n1', 'the cache was kept behind');
  });

  test('a claim that is older on the API server than the node taken off it, as after the restore of a backup, goes on', async () => {
    const { rig, uid } = await lateBinding();
    await using _rig = rig;
    for (let number = 0; number < 50; number++) rig.addClass(`other-${number}`); // versions between the claim and the write
    const match = { resource: 'persistentvolumeclaims' };
    rig.fault({ match: { ...match, watch: true }, action: { type: 'noWatchList' }, times: 1 });
    rig.fault({ match: { ...match, watch: true }, action: { type: 'watchStall' } });
    rig.provisioner.provisionSteps.push(failure('reschedule'));
    rig.startOnly();
    await rig.synced(uid);
    assert.deepEqual(rig.writes, [`PUT ${path}`]);
    rig.fault({ match: { ...match, verb: 'get' }, action: { type: 'staleRead', rvBack: 25 } });
    rig.controller.wakeClaim(uid);
    await rig.synced(uid, 2);
    assert.equal(rig.limiter.syncs(uid)[1]?.end, 'done');
    assert.equal(rig.provisioner.provisions.length, 2);
  });

  test('the node that the scheduler chooses next is used', async () => {
    const { rig, uid } = await lateBinding();
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('reschedule'));
    await rig.start();
    await rig.synced(uid, 2);
    rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv', [annotation.node]: 'n2' } });
    await rig.synced(uid, 3);
    await rig.stop();
    assert.deepEqual(
      rig.provisioner.provisions.map(({ selectedNodeName }) => selectedNodeName),
      ['n1', 'n2'],
    );
    assert.deepEqual(rig.metrics.totals, { pf: 1, pt: 1 });
    assert.equal(rig.volumes.length, 1);
  });

  test('the claim without its node is not put into the cache by hand', async () => {
    const { rig, uid } = await lateBinding({});
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(failure('reschedule'));
    await rig.start();
    await rig.synced(uid, 2);
    await rig.stop();
    const [, second] = rig.provisioner.provisions;
    assert.equal(second?.claim.metadata.resourceVersion, rig.claim()?.metadata.resourceVersion);
  });
});

describe('changes while an attempt runs', () => {
  test('four changes lead to one more sync at once, with the last; the back-off comes in addition', async () => {
    const { rig, clock, uid } = await scene();
    await using _rig = rig;
    const first = Promise.withResolvers<ReturnType<typeof madeVolume>>();
    rig.provisioner.provisionSteps.push(() => first.promise, failure('finished'), failure('finished'));
    rig.startOnly();
    await rig.until('the first call', () => rig.provisioner.provisions.length === 1);
    for (const value of ['1', '2', '3', '4']) rig.touchClaim('a', value);
    const settled = rig.settle();
    await rig.until('the changes in the cache', () => rig.controller.queueLengths.claims === 2);
    first.reject(failure('finished'));
    await settled;
    await rig.synced(uid, 2);
    assert.deepEqual(
      rig.provisioner.provisions.map(({ claim }) => claim.metadata.labels?.['touched']),
      [undefined, '4'],
    );
    await clock.advance(1000); // the pause after the first failure
    await rig.synced(uid, 3);
    assert.equal(rig.provisioner.provisions.length, 3);
    await rig.settle();
    assert.equal(rig.provisioner.provisions.length, 3);
  });
});
