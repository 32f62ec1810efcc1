import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { IgnoredError } from '../../../src/provision/provisioner.ts';
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
  test('a volume that is there already for this claim, with this storage, counts as saved', async () => {
    const { rig, uid } = await scene();
    await using _rig = rig;
    const csi = { driver: 'drv', volumeHandle: 'handle-taken', volumeAttributes: { since: 'before' } };
    rig.addVolume('taken', 'Available', {
      annotations: {},
      spec: { csi, claimRef: { namespace: 'ns', name: 'a', uid } },
    });
    rig.provisioner.provisionSteps.push(() => madeVolume('taken'));
    await rig.start();
    await rig.stop();
    assert.deepEqual(rig.writes, [post]);
    assert.deepEqual(rig.volumes[0]?.spec.csi, csi, 'the stored volume is left as it was');
    assert.deepEqual(
      rig.events.map(({ reason, message }) => [reason, message]),
      [
        ['Provisioning', 'External provisioner is provisioning volume for claim "ns/a"'],
        ['ProvisioningSucceeded', 'Successfully provisioned volume taken'],
      ],
    );
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  for (const { title, claimRef, handle, problem } of [
    {
      title: 'for no claim',
      claimRef: undefined,
      handle: 'handle-taken',
      problem: 'is for no claim. Delete it if nobody uses it, or recreate the claim',
    },
    {
      title: 'for another claim',
      claimRef: { namespace: 'ns', name: 'a', uid: 'other' },
      handle: 'handle-taken',
      problem: 'is for claim ns/a with UID "other". Delete it if nobody uses it, or recreate the claim',
    },
    {
      title: 'with other storage',
      claimRef: { namespace: 'ns', name: 'a' },
      handle: 'other',
      problem:
        'with other storage: csi {"driver":"drv","volumeHandle":"other"}. What was provisioned now is in no volume: csi {"driver":"drv","volumeHandle":"handle-taken"}',
    },
  ]) {
    test(`a volume that is there already ${title} is a failure, and no storage is deleted`, async () => {
      const { rig, uid } = await scene();
      await using _rig = rig;
      const csi = { driver: 'drv', volumeHandle: handle };
      rig.addVolume('taken', 'Available', { annotations: {}, spec: { csi, ...(claimRef && { claimRef }) } });
      rig.provisioner.provisionSteps.push(() => madeVolume('taken'));
      await rig.start();
      assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
      await rig.stop();
      assert.deepEqual(rig.writes, [post]);
      assert.deepEqual(rig.provisioner.deletions, []);
      const failures = rig.events.filter(({ type }) => type === 'Warning');
      assert.equal(failures.length, 1);
      assert.equal(failures[0]?.reason, 'ProvisioningFailed');
      assert.ok(
        failures[0].message.startsWith(
          'Error creating provisioned PV object for claim ns/a: PersistentVolume "taken" exists already',
        ),
      );
      assert.ok(failures[0].message.endsWith(problem), failures[0].message);
      assert.deepEqual(rig.metrics.totals, { pf: 1 });
    });
  }

  test('a volume that exists and cannot be read is tried again', async () => {
    const { rig } = await scene();
    await using _rig = rig;
    rig.fault({ match: { verb: 'create', resource: 'persistentvolumes' }, action: { type: 'dropAfter' }, times: 1 });
    const unread = rig.refuse('list', 'persistentvolumes', { ...boom, times: 1 });
    await rig.start();
    await rig.stop();
    assert.equal(unread.hits, 1);
    assert.deepEqual(rig.writes, [post, post, post]);
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  test('a volume whose first answer was lost is not made a second time', async () => {
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

  test('with the option on, the volume carries our finalizer from the start', async () => {
    const { rig } = await scene({ controller: { addFinalizer: true } });
    await using _rig = rig;
    await rig.start();
    assert.deepEqual(rig.wire.writes[0]?.body.metadata.finalizers, [F]);
    assert.deepEqual(rig.volumes[0]?.metadata.finalizers, [F, pvProtection]);
  });

  test('a finalizer that the provisioner set itself is not doubled', async () => {
    const { rig, uid } = await scene({ controller: { addFinalizer: true } });
    await using _rig = rig;
    rig.provisioner.provisionSteps.push(() => ({
      ...madeVolume(`pvc-${uid}`),
      metadata: { name: `pvc-${uid}`, finalizers: [F, 'x/y'] },
    }));
    await rig.start();
    assert.deepEqual(rig.wire.writes[0]?.body.metadata.finalizers, [F, 'x/y']);
  });

  test('class name, claim and author of a volume are the controller’s to say, the rest is kept', async () => {
    const { rig, uid } = await scene();
    await using _rig = rig;
    const spec = {
      storageClassName: 'wrong',
      claimRef: { kind: 'X', namespace: 'y', name: 'z', uid: 'wrong' },
      mountOptions: ['ro'],
      persistentVolumeReclaimPolicy: 'Retain' as const,
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

test('a volume that was returned with nothing but its source is saved with what class and claim ask for', async () => {
  await using rig = await Rig.prepare();
  rig.addClass('c1', { reclaimPolicy: 'Delete' });
  const { uid } = rig.addClaim().metadata;
  const name = `pvc-${uid}`;
  rig.provisioner.provisionSteps.push(() => ({ metadata: { name }, spec: { nfs: { server: 's', path: '/p' } } }));
  await rig.start();
  const volume = await rig.until('the volume', () => rig.volume(name));
  assert.equal(volume.spec.persistentVolumeReclaimPolicy, 'Delete');
  assert.deepEqual(volume.spec.capacity, { storage: '1Gi' });
  assert.deepEqual(volume.spec.accessModes, ['ReadWriteOnce']);
});

describe('a volume that cannot be saved', () => {
  async function queueScene(options: RigOptions = {}): Promise<{ rig: Rig; clock: ManualClock; uid: string }> {
    const clock = new ManualClock();
    const limiter = new ExponentialLimiter({ baseMs: 5, maxMs: 1_000_000 });
    return {
      ...(await scene({ clock, ...options, controller: { saveLimiter: limiter, ...options.controller } })),
      clock,
    };
  }

  test('a volume is saved in the background, at 0, 0, 5, 15, 35 and 75 ms', async () => {
    const { rig, clock, uid } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 5 });
    await rig.start();
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
    assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'done' }]);
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

  for (const { title, fault, tries, told } of [
    {
      title: 'a webhook that fails, again and again, is',
      fault: { code: 500, reason: 'InternalError', message: 'failed calling webhook "w"' },
      tries: 8,
      told: [
        'Error creating provisioned PV object for claim ns/a: failed calling webhook "w". The volume is kept at the storage, saving it is tried again until it succeeds.',
      ],
    },
    {
      title: 'an overloaded API server is not, for a while,',
      fault: { code: 429, reason: 'TooManyRequests', message: 'too many requests' },
      tries: 8,
      told: [],
    },
    {
      title: 'an API server that is overloaded for 40 seconds is',
      fault: { code: 429, reason: 'TooManyRequests', message: 'too many requests' },
      tries: 16,
      told: [
        'Error creating provisioned PV object for claim ns/a: too many requests. The volume is kept at the storage, saving it is tried again until it succeeds.',
      ],
    },
  ]) {
    test(`${title} recorded on the claim whose volume cannot be saved`, async () => {
      const { rig, clock } = await queueScene();
      await using _rig = rig;
      const failing = rig.refuse('create', 'persistentvolumes', fault);
      await rig.start();
      const pass = async (condition: () => boolean): Promise<void> => {
        while (!condition()) await clock.advance(1000);
      };
      await pass(() => rig.unsavedLines >= tries);
      failing.remove();
      await pass(() => rig.volumes.length === 1);
      await rig.stop();
      const messages = rig.events.filter(({ reason }) => reason === 'ProvisioningFailed').map(({ message }) => message);
      assert.deepEqual(messages, told);
    });
  }

  test('the volume of a deleted claim is saved without an event', async () => {
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

  test('a change of the claim while its volume is unsaved provisions it again', async () => {
    const { rig, uid } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 2 });
    await rig.start();
    await rig.until('the second try to fail', () => rig.unsavedLines === 2);
    rig.touchClaim();
    await rig.synced(uid, 2);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 2);
    assert.equal(rig.volumes.length, 1);
    assert.deepEqual(rig.metrics.totals, { pt: 2 });
  });

  test('a volume whose name is taken while it is unsaved is a failure, and no longer waits', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 2 });
    rig.provisioner.provisionSteps.push(() => madeVolume('taken'));
    await rig.start();
    await rig.until('the second try to fail', () => rig.unsavedLines === 2);
    rig.addVolume('taken', 'Available');
    await rig.settle();
    await clock.advance(5);
    await rig.until('the third try to fail', () => rig.unsavedLines === 3);
    await rig.stop();
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningFailed']);
    assert.match(rig.events.at(-1)?.message ?? '', /PersistentVolume "taken" exists already and is for no claim/);
  });

  const claimEvents = (rig: Rig): string[] =>
    rig.events.filter(({ reason }) => reason === 'ProvisioningFailed').map(({ type, message }) => `${type} ${message}`);
  const refusal = {
    code: 422,
    reason: 'Invalid',
    message: 'PersistentVolume is invalid: spec.csi.volumeHandle: Required',
  };
  const missingRight = {
    code: 403,
    reason: 'Forbidden',
    message: 'persistentvolumes is forbidden: User "u" cannot create resource "persistentvolumes" at the cluster scope',
  };

  test('a volume that the API server refuses is tried after 1, 2, 4 s and so on to 5 minutes, with an event on the claim', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    const refused = rig.refuse('create', 'persistentvolumes', refusal);
    await rig.start();
    let tries = 1;
    for (const pauseMs of [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map((seconds) => seconds * 1000)) {
      await clock.advance(pauseMs - 1);
      await rig.settle();
      assert.equal(rig.writes.length, tries);
      await clock.advance(1);
      tries++;
      await rig.until(`try ${tries} to fail`, () => rig.unsavedLines === tries);
    }
    const reads = rig.wire.requests.filter(({ path }) => path.includes('/namespaces/ns/persistentvolumeclaims'));
    assert.deepEqual(reads, [], 'the cache shows the claim');
    refused.remove();
    await clock.advance(300_000);
    await rig.until('the volume', () => rig.volumes.length === 1);
    await rig.stop();
    assert.deepEqual(claimEvents(rig), [
      `Warning Error creating provisioned PV object for claim ns/a: ${refusal.message}. The volume is kept at the storage, saving it is tried again at least every 5 minutes.`,
    ]);
    assert.equal(rig.reasons.at(-1), 'ProvisioningSucceeded');
    assert.deepEqual(rig.provisioner.deletions, []);
  });

  test('a volume that the API server refuses holds up no stop, and the log says what is left', async () => {
    const { rig } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', refusal);
    await rig.start();
    await rig.stop();
    assert.equal(rig.writes.length, 1);
    const [left, ...more] = rig.log.filter(({ message }) => message === 'Ended before a volume could be saved');
    assert.deepEqual(more, []);
    const { volume, handle, claim } = left?.fields as Record<string, string>;
    assert.deepEqual({ handle, claim }, { handle: `handle-${volume}`, claim: 'ns/a' });
  });

  test('a stop waits for a retry of a refused volume that is under way', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...refusal, times: 1 });
    await rig.start();
    await rig.until('the first try to fail', () => rig.unsavedLines === 1);
    const action = { type: 'delay', ms: 300 } as const;
    const slow = rig.server.faults.add({ match: { verb: 'create', resource: 'persistentvolumes' }, action });
    await clock.advance(1000);
    await rig.until('the next try', () => slow.hits === 1);
    await rig.stop();
    assert.equal(rig.volumes.length, 1);
    assert.ok(!rig.log.some(({ message }) => message === 'Ended before a volume could be saved'));
  });

  test('a stop waits for a volume that may still be saved, beside one that is refused', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...refusal, times: 1 });
    await rig.start();
    rig.refuse('create', 'persistentvolumes', { ...boom, times: 2 });
    const second = rig.addClaim('b').metadata.uid;
    await rig.synced(second);
    await rig.until('the second volume to fail twice', () => rig.unsavedLines === 3);
    const stopped = rig.stop();
    await clock.advance(5);
    await stopped;
    assert.deepEqual(
      rig.volumes.map(({ metadata }) => metadata.name),
      [`pvc-${second}`],
    );
  });

  /** Lets tries fail for want of the right, until so many have; pauses are those before each further try. */
  const failForbidden = async ({ rig, clock }: { rig: Rig; clock: ManualClock }, tries: number): Promise<void> => {
    for (let failed = 1; failed < tries; failed++) {
      await rig.until(`try ${failed} to fail`, () => rig.unsavedLines === failed);
      await clock.advance(Math.min(100 * 2 ** (failed - 1), 60_000));
    }
    await rig.until(`try ${tries} to fail`, () => rig.unsavedLines === tries);
    await rig.settle();
  };

  test('without the right to create volumes it is tried ever more rarely, up to once a minute, with an event on the claim', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...missingRight, times: 11 });
    await rig.start();
    await failForbidden({ rig, clock }, 11);
    await clock.advance(59_999);
    await rig.settle();
    assert.equal(rig.writes.length, 11);
    await clock.advance(1);
    await rig.until('the volume', () => rig.volumes.length === 1);
    await rig.stop();
    assert.deepEqual(claimEvents(rig), [
      `Warning Error creating provisioned PV object for claim ns/a: ${missingRight.message}. The volume is kept at the storage, saving it is tried again every minute.`,
    ]);
    const rules = rig.log.filter(({ message }) => message.startsWith('Not permitted'));
    assert.equal(rules.length, 1, 'all tries lie in one minute of the transport, whose clock is the real one');
    assert.match((rules[0]?.fields as { addRule: string }).addRule, /verbs: \["get", "list", "watch", "create", /);
  });

  test('what a server forbids that has only just started is saved soon, and is no event', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...missingRight, times: 5 });
    await rig.start();
    await failForbidden({ rig, clock }, 5);
    const stopped = rig.stop(); // which waits for it
    await clock.advance(1600);
    await stopped;
    assert.equal(rig.volumes.length, 1);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
    assert.equal(rig.provisioner.provisions.length, 1);
  });

  test('a right that was granted meanwhile counts at a stop: each volume is tried once more', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', { ...missingRight, times: 6 });
    await rig.start();
    await failForbidden({ rig, clock }, 6);
    await rig.stop();
    assert.equal(rig.volumes.length, 1);
    assert.equal(rig.reasons.at(-1), 'ProvisioningSucceeded');
  });

  test('a right that is still missing holds up no stop', async () => {
    const { rig, clock } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', missingRight);
    await rig.start();
    await failForbidden({ rig, clock }, 6);
    await rig.stop();
    assert.equal(rig.writes.length, 7);
    assert.equal(rig.log.filter(({ message }) => message === 'Ended before a volume could be saved').length, 1);
  });

  describe('whose claim is gone', () => {
    /** Deletes the claim, and lets so much time pass that its volume is tried again. */
    async function claimGone({ rig, clock }: { rig: Rig; clock: ManualClock }): Promise<void> {
      rig.deleteClaim();
      await rig.until('the cache without the claim', () => rig.claimInCache('a') === undefined);
      await clock.advance(1000);
      await rig.settle();
    }

    for (const { why, response } of [
      { why: 'for its content', response: refusal },
      { why: 'for want of the permission', response: missingRight },
    ]) {
      test(`loses its storage if the API server has rejected each request, ${why}`, async () => {
        const { rig, clock, uid } = await queueScene();
        await using _rig = rig;
        rig.refuse('create', 'persistentvolumes', response);
        await rig.start();
        await rig.until('the first try to fail', () => rig.unsavedLines === 1);
        assert.equal(rig.provisioner.deletions.length, 0, 'the claim is still there');
        await claimGone({ rig, clock });
        await rig.until('the deletion', () => rig.provisioner.deletions.length === 1);
        await clock.advance(600_000);
        await rig.stop();
        assert.deepEqual(rig.writes, [post], 'nothing is saved any more');
        const [deleted, ...more] = rig.provisioner.deletions;
        assert.deepEqual(more, []);
        assert.equal(deleted?.spec.claimRef?.uid, uid);
        const lines = rig.log.filter(({ message }) => message.startsWith('Deleted the storage of a volume'));
        assert.deepEqual(
          lines.map(({ fields }) => fields),
          [{ volume: `pvc-${uid}`, handle: `handle-pvc-${uid}`, claim: 'ns/a' }],
        );
        assert.ok(!rig.log.some(({ message }) => message === 'Ended before a volume could be saved'));
      });
    }

    test('is saved if one request had no clear response, though later ones were rejected', async () => {
      const { rig, clock } = await queueScene();
      await using _rig = rig;
      rig.refuse('create', 'persistentvolumes', { ...boom, times: 1 });
      const refused = rig.refuse('create', 'persistentvolumes', refusal);
      await rig.start();
      await rig.until('the rejection', () => rig.unsavedLines === 2);
      await claimGone({ rig, clock });
      await rig.until('a further try', () => rig.unsavedLines > 2);
      refused.remove();
      await clock.advance(300_000);
      await rig.until('the volume', () => rig.volumes.length === 1);
      await rig.stop();
      assert.deepEqual(rig.provisioner.deletions, []);
    });

    test('keeps its storage while the API server does not say that the claim is gone', async () => {
      const { rig, clock } = await queueScene();
      await using _rig = rig;
      rig.refuse('create', 'persistentvolumes', refusal);
      await rig.start();
      await rig.until('the first try to fail', () => rig.unsavedLines === 1);
      const unread = rig.refuse('get', 'persistentvolumeclaims', boom);
      await claimGone({ rig, clock });
      await rig.until('the read', () => unread.hits > 0);
      const told = 'The storage of a volume that could not be saved is not deleted yet, trying again';
      await rig.until('the line', () => rig.log.some(({ message }) => message === told));
      assert.deepEqual(rig.provisioner.deletions, []);
      unread.remove();
      await clock.advance(300_000);
      await rig.until('the deletion', () => rig.provisioner.deletions.length === 1);
    });

    for (const { title, holder } of [
      { title: 'its name', holder: (name: string) => [name, 'other'] as const },
      { title: 'its storage', holder: (name: string) => ['by-hand', `handle-${name}`] as const },
    ]) {
      test(`keeps its storage if a PersistentVolume has ${title}`, async () => {
        const storageKeys = ({ spec }: PersistentVolume): string[] => (spec.csi ? [spec.csi.volumeHandle] : []);
        const { rig, clock, uid } = await queueScene({ methods: { storageKeys } });
        await using _rig = rig;
        rig.refuse('create', 'persistentvolumes', refusal);
        await rig.start();
        await rig.until('the first try to fail', () => rig.unsavedLines === 1);
        const [name, volumeHandle] = holder(`pvc-${uid}`);
        rig.addVolume(name, 'Available', { annotations: {}, spec: { csi: { driver: 'drv', volumeHandle } } });
        await claimGone({ rig, clock });
        const told = 'The storage is not deleted: a PersistentVolume refers to it';
        const line = await rig.until('the line', () => rig.log.find(({ message }) => message === told));
        assert.equal((line.fields as { holder: string }).holder, name);
        await clock.advance(600_000);
        await rig.stop();
        assert.deepEqual(rig.provisioner.deletions, []);
        assert.deepEqual(rig.writes, [post]);
      });
    }

    test('has its storage deleted again and again until that succeeds, and a stop does not wait for it', async () => {
      const { rig, clock } = await queueScene();
      await using _rig = rig;
      rig.refuse('create', 'persistentvolumes', refusal);
      await rig.start();
      await rig.until('the first try to fail', () => rig.unsavedLines === 1);
      rig.provisioner.deleteSteps.push(new Error('busy'), new IgnoredError('not mine'));
      rig.provisioner.otherwiseDelete = new Error('still busy');
      await claimGone({ rig, clock });
      for (const tries of [1, 2, 3]) {
        await rig.until(`deletion ${tries}`, () => rig.provisioner.deletions.length >= tries);
        await clock.advance(300_000);
      }
      await rig.stop();
      assert.deepEqual(rig.writes, [post]);
      assert.equal(rig.log.filter(({ message }) => message === 'Ended before a volume could be saved').length, 1);
    });
  });

  test('that names no CSI handle is left with its source in the log when the process ends', async () => {
    const { rig } = await queueScene();
    await using _rig = rig;
    rig.refuse('create', 'persistentvolumes', refusal);
    rig.provisioner.provisionSteps.push(({ volumeName: name }) => ({
      metadata: { name },
      spec: { nfs: { server: 's', path: '/p' } },
    }));
    await rig.start();
    await rig.stop();
    const left = rig.log.find(({ message }) => message === 'Ended before a volume could be saved');
    assert.equal((left?.fields as { handle?: string }).handle, 'nfs {"server":"s","path":"/p"}');
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
