import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import type { InjectedFault } from '../../../sandbox/api/faults.ts';
import {
  annotation,
  type ClaimSketch,
  pvProtection,
  resource,
  Rig,
  type RigOptions,
  type VolumeSketch,
} from './rig.ts';

interface Scene {
  rig: Rig;
  /** UID of claim `ns/a`. */
  uid: string;
}

/** One claim `ns/a` and class `c1`, looked at until there is nothing to do any more; the controller is stopped then. */
async function once(
  options: RigOptions & { claim?: ClaimSketch; classFields?: object; before?: (rig: Rig, uid: string) => void },
  check: (scene: Scene) => void,
): Promise<void> {
  const { claim, classFields, before, ...rigOptions } = options;
  await using rig = await Rig.prepare(rigOptions);
  rig.addClass('c1', classFields);
  const { uid } = rig.addClaim('a', claim).metadata;
  before?.(rig, uid);
  await rig.start();
  await rig.stop();
  check({ rig, uid });
}

/** What cases call "as 1": one call, one volume, two events, one success. */
function assertProvisioned({ rig, uid }: Scene): PersistentVolume {
  assert.deepEqual(
    rig.provisioner.provisions.map(({ volumeName }) => volumeName),
    [`pvc-${uid}`],
  );
  assert.deepEqual(rig.writes, ['POST /api/v1/persistentvolumes']);
  assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
  assert.deepEqual(rig.metrics.totals, { pt: 1 });
  assert.deepEqual(rig.limiter.syncs(uid)[0], { end: 'done' });
  const [volume] = rig.volumes;
  assert.ok(volume);
  return volume;
}

function assertNothing({ rig, uid }: Scene, syncs = [{ end: 'done' }]): void {
  assert.deepEqual(rig.provisioner.provisions, []);
  assert.deepEqual(rig.writes, []);
  assert.deepEqual(rig.events, []);
  assert.deepEqual(rig.metrics.totals, {});
  assert.deepEqual(rig.limiter.syncs(uid), syncs);
}

/** The claim as it stands says that there is nothing to do: it never came to the queue. */
function assertNotQueued(scene: Scene): void {
  assertNothing(scene, []);
}

/** No call and this one event at most, one failure, no retry. */
function assertStopped({ rig, uid }: Scene, message?: string): void {
  assert.deepEqual(rig.provisioner.provisions, []);
  const event = { type: 'Warning', reason: 'ProvisioningFailed', count: 1, object: 'ns/a' };
  assert.deepEqual(rig.events, message === undefined ? [] : [{ ...event, message }]);
  assert.deepEqual(rig.metrics.totals, { pf: 1 });
  assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'done' }]);
}

/** Classes made after the start do not come to the cache. */
function stallClasses(rig: Rig): InjectedFault {
  const match = { resource: 'storageclasses', watch: true };
  rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
  return rig.fault({ match, action: { type: 'watchStall' } });
}

const foreign = { nfs: { server: 's', path: '/p' } };

describe('whether a claim is provisioned', () => {
  test('a claim of ours gets a volume that names it, two events and a count', async () => {
    await once({}, (scene) => {
      const { rig, uid } = scene;
      const volume = assertProvisioned(scene);
      const [call] = rig.provisioner.provisions;
      assert.equal(call?.selectedNodeName, '');
      assert.equal(call.storageClass.metadata.name, 'c1');
      assert.equal(call.claim.metadata.name, 'a');
      assert.deepEqual(volume.spec.claimRef, {
        kind: 'PersistentVolumeClaim',
        apiVersion: 'v1',
        namespace: 'ns',
        name: 'a',
        uid,
        resourceVersion: rig.claim()?.metadata.resourceVersion,
      });
      assert.equal(volume.metadata.name, `pvc-${uid}`);
      assert.deepEqual(volume.metadata.annotations, { [annotation.provisionedBy]: 'drv' });
      assert.deepEqual(volume.metadata.finalizers, [pvProtection]);
      assert.equal(volume.spec.storageClassName, 'c1');
      const about = { type: 'Normal', count: 1, object: 'ns/a' };
      assert.deepEqual(rig.events, [
        {
          ...about,
          reason: 'Provisioning',
          message: 'External provisioner is provisioning volume for claim "ns/a"',
        },
        { ...about, reason: 'ProvisioningSucceeded', message: `Successfully provisioned volume pvc-${uid}` },
      ]);
      assert.deepEqual(rig.metrics.counted[0]?.labels, { class: 'c1', source: '' });
      assert.ok((rig.metrics.counted[0].seconds ?? -1) >= 0);
    });
  });

  test('a claim of another provisioner is left alone', async () => {
    const before = (rig: Rig): void => {
      rig.addClass('c2', { provisioner: 'other' });
      rig.addClaim('b', { storageClassName: 'c2', annotations: { [annotation.provisioner]: 'other' } });
    };
    await once({ before }, assertProvisioned);
  });

  for (const { title, ...options } of [
    { title: 'a claim that names its volume is left alone', claim: { spec: { volumeName: 'v' } } },
    { title: 'a claim without annotation is left alone', claim: { annotations: {} } },
    {
      title: 'a claim whose GA annotation names another provisioner is left alone',
      claim: { annotations: { [annotation.provisioner]: 'other', [annotation.betaProvisioner]: 'drv' } },
    },
    {
      title: 'a claim whose GA annotation is empty is left alone',
      claim: { annotations: { [annotation.provisioner]: '', [annotation.betaProvisioner]: 'drv' } },
    },
  ]) {
    test(title, async () => {
      await once(options, assertNotQueued);
    });
  }

  for (const { title, ...options } of [
    {
      title: 'WaitForFirstConsumer without a node waits',
      claim: {},
      classFields: { volumeBindingMode: 'WaitForFirstConsumer' },
    },
    {
      title: 'WaitForFirstConsumer with an empty node waits',
      claim: { annotations: { [annotation.provisioner]: 'drv', [annotation.node]: '' } },
      classFields: { volumeBindingMode: 'WaitForFirstConsumer' },
    },
    {
      title: 'the alpha annotation does not end the wait for a node',
      claim: { annotations: { [annotation.provisioner]: 'drv', [annotation.alphaNode]: 'n9' } },
      classFields: { volumeBindingMode: 'WaitForFirstConsumer' },
    },
  ]) {
    test(title, async () => {
      await once(options, (scene) => assertNothing(scene));
    });
  }

  test('a claim with the beta annotation alone is provisioned', async () => {
    await once({ claim: { annotations: { [annotation.betaProvisioner]: 'drv' } } }, assertProvisioned);
  });

  test('a claim whose GA annotation names us is provisioned, whatever the beta one says', async () => {
    const annotations = { [annotation.provisioner]: 'drv', [annotation.betaProvisioner]: 'other' };
    await once({ claim: { annotations } }, assertProvisioned);
  });

  for (const { title, asked } of [
    { title: 'an additional name is ours as well', asked: 'in-tree' },
    { title: 'our name on the claim and the additional one in the class fit together', asked: 'drv' },
  ]) {
    test(title, async () => {
      const options = {
        controller: { additionalProvisionerNames: ['in-tree'] },
        claim: { annotations: { [annotation.provisioner]: asked } },
        classFields: { provisioner: 'in-tree' },
      };
      await once(options, (scene) => {
        assert.deepEqual(assertProvisioned(scene).metadata.annotations, { [annotation.provisionedBy]: 'in-tree' });
      });
    });
  }

  test('a missing class is asked for again and again, and its creation brings the claim back at once', async () => {
    const clock = new ManualClock();
    await using rig = await Rig.prepare({ clock });
    const { uid } = rig.addClaim().metadata;
    await rig.start();
    assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
    await clock.advance(rig.limiter.delays(uid)[0] ?? NaN);
    await rig.synced(uid, 2);
    assert.equal(rig.limiter.syncs(uid)[1]?.end, 'retry');
    assert.deepEqual(rig.metrics.totals, { pf: 2 });
    assert.deepEqual(rig.provisioner.provisions, []);

    rig.addClass();
    await rig.synced(uid, 3);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.metrics.totals, { pf: 2, pt: 1 });
    assert.deepEqual(rig.reasons, ['ProvisioningWaiting', 'Provisioning', 'ProvisioningSucceeded']);
  });

  test('a missing class is reported once for each claim and class', async () => {
    const clock = new ManualClock();
    await using rig = await Rig.prepare({ clock });
    const { uid } = rig.addClaim('a', { storageClassName: null }).metadata;
    const nextTurn = async (): Promise<void> => {
      const { length } = rig.limiter.syncs(uid);
      await clock.advance(rig.limiter.delays(uid).at(-1) ?? NaN);
      await rig.synced(uid, length + 1);
    };
    await rig.start();
    await nextTurn();
    rig.changeClaim('a', {}, { storageClassName: 'c2' });
    await rig.synced(uid, 3);
    await nextTurn();
    await rig.stop();
    assert.equal(rig.limiter.syncs(uid).length, 4);
    assert.deepEqual(
      rig.events.map(({ type, reason, message, count }) => ({ type, reason, message, count })),
      ['Waiting for a StorageClass: the claim names none', 'Waiting for StorageClass "c2", which does not exist'].map(
        (message) => ({ type: 'Normal', reason: 'ProvisioningWaiting', message, count: 1 }),
      ),
    );
  });

  test('a claim without any class name fails like one whose class is missing', async () => {
    await once({ claim: { storageClassName: null } }, ({ rig, uid }) => {
      assert.deepEqual(rig.provisioner.provisions, []);
      assert.deepEqual(
        rig.events.map(({ reason, message }) => `${reason}: ${message}`),
        ['ProvisioningWaiting: Waiting for a StorageClass: the claim names none'],
      );
      assert.deepEqual(rig.metrics.counted, [{ name: 'pf', labels: { class: '', source: '' } }]);
      assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
      const [line] = rig.log.filter(({ message }) => message.startsWith('Error syncing claim'));
      assert.match((line?.fields as { err: Error }).err.message, /^storageClass "" not found$/);
    });
  });

  test('the beta class annotation wins over the field, which still labels the metric', async () => {
    const annotations = { [annotation.provisioner]: 'drv', [annotation.betaClass]: 'c1' };
    await once({ claim: { annotations, storageClassName: 'zzz' } }, (scene) => {
      assert.equal(assertProvisioned(scene).spec.storageClassName, 'c1');
      assert.deepEqual(scene.rig.metrics.counted[0]?.labels, { class: 'zzz', source: '' });
    });
  });

  test('a class that names another provisioner by now stops the claim, with an event', async () => {
    await once({ classFields: { provisioner: 'other' } }, (scene) => {
      assertStopped(
        scene,
        'StorageClass "c1" names provisioner "other", and the claim asks for "drv". Nothing is provisioned until both agree',
      );
    });
  });

  test('a class that the cache does not show yet is read, and the claim provisioned at once', async () => {
    await using rig = await Rig.prepare();
    const stall = stallClasses(rig);
    await rig.start();
    await rig.until('the watch', () => stall.hits > 0);
    rig.addClass();
    const { uid } = rig.addClaim().metadata;
    await rig.synced(uid);
    await rig.stop();
    assert.equal(rig.provisioner.provisions[0]?.storageClass.metadata.name, 'c1');
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
    assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'done' }]);
  });

  test('a class read in this way that waits for a consumer is waited for', async () => {
    await using rig = await Rig.prepare();
    stallClasses(rig);
    await rig.start();
    rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    const { uid } = rig.addClaim().metadata;
    await rig.synced(uid);
    await rig.stop();
    assertNothing({ rig, uid });
  });

  test('a class that cannot be read is not said to be missing', async () => {
    await once(
      {
        claim: { storageClassName: 'c2' },
        before: (rig) =>
          rig.refuse('get', 'storageclasses', { code: 500, reason: 'InternalError', message: 'boom', times: 1 }),
      },
      ({ rig, uid }) => {
        assert.deepEqual(rig.events, []);
        assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
      },
    );
  });

  for (const { title, storageClassName, fault } of [
    { title: 'that may not be read', storageClassName: 'c2', fault: { code: 403, reason: 'Forbidden', message: 'no' } },
    { title: 'whose name no object can have', storageClassName: 'a/b', fault: undefined },
  ]) {
    test(`a missing class ${title} is waited for`, async () => {
      const options = {
        claim: { annotations: { [annotation.provisioner]: 'drv', [annotation.betaClass]: storageClassName } },
        before: (rig: Rig) => fault !== undefined && rig.refuse('get', 'storageclasses', fault),
      };
      await once(options, ({ rig }) => {
        assert.deepEqual(
          rig.events.map(({ message }) => message),
          [`Waiting for StorageClass "${storageClassName}", which does not exist`],
        );
      });
    });
  }

  for (const { title, annotations, classFields = {}, node } of [
    {
      title: 'WaitForFirstConsumer with a node is provisioned for it, whether or not it exists',
      annotations: { [annotation.node]: 'n1' },
      classFields: { volumeBindingMode: 'WaitForFirstConsumer' },
      node: 'n1',
    },
    {
      title: 'the alpha annotation names the node where there is no other',
      annotations: { [annotation.alphaNode]: 'n9' },
      node: 'n9',
    },
    {
      title: 'an empty node counts as chosen',
      annotations: { [annotation.node]: '', [annotation.alphaNode]: 'n9' },
      node: '',
    },
  ]) {
    test(title, async () => {
      const claim = { annotations: { [annotation.provisioner]: 'drv', ...annotations } };
      await once({ claim, classFields }, (scene) => {
        assertProvisioned(scene);
        assert.equal(scene.rig.provisioner.provisions[0]?.selectedNodeName, node);
      });
    });
  }

  test('the qualifier may say no', async () => {
    await once({ methods: { shouldProvision: () => false } }, (scene) => assertNothing(scene));
  });

  test('the qualifier may say yes, and is not asked for claims of others', async () => {
    const asked: string[] = [];
    const shouldProvision = ({ metadata }: { metadata: { name: string } }): boolean => asked.push(metadata.name) > 0;
    const before = (rig: Rig): void => {
      rig.addClaim('b', { annotations: { [annotation.provisioner]: 'other' } });
    };
    await once({ methods: { shouldProvision }, before }, assertProvisioned);
    assert.deepEqual(asked, ['a']);
  });

  test('the qualifier is not asked about a claim with a volume', async () => {
    const asked: string[] = [];
    const shouldProvision = ({ metadata }: { metadata: { name: string } }): boolean => asked.push(metadata.name) > 0;
    const claim = { spec: { volumeName: 'v' } };
    await once({ methods: { shouldProvision }, claim }, assertNotQueued);
    const before = (rig: Rig, uid: string): void => rig.controller.wakeClaim(uid);
    await once({ methods: { shouldProvision }, claim, before }, (scene) => assertNothing(scene));
    assert.deepEqual(asked, []);
  });

  test('an error of the qualifier fails the attempt, which is retried', async () => {
    const shouldProvision = (): Promise<boolean> => Promise.reject(new Error('no idea'));
    await once({ methods: { shouldProvision } }, ({ rig, uid }) => {
      assert.deepEqual(rig.provisioner.provisions, []);
      assert.deepEqual(rig.events, []);
      assert.deepEqual(rig.metrics.totals, { pf: 1 });
      assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
      const failure = rig.log.find(({ message }) => message === 'Error syncing claim, trying again');
      assert.ok(failure !== undefined && 'err' in failure.fields);
      assert.equal(String(failure.fields.err), 'Error: no idea');
    });
  });

  for (const { title, methods } of [
    { title: 'a Block claim is refused where nobody said that Block works', methods: {} },
    {
      title: 'a Block claim is refused where Block does not work',
      methods: { supportsBlock: () => false },
    },
  ]) {
    test(title, async () => {
      await once({ methods, claim: { spec: { volumeMode: 'Block' } } }, ({ rig, uid }) => {
        assert.deepEqual(rig.provisioner.provisions, []);
        assert.deepEqual(rig.events, [
          {
            type: 'Warning',
            reason: 'ProvisioningFailed',
            message: 'drv does not support block volume provisioning',
            count: 1,
            object: 'ns/a',
          },
        ]);
        assert.deepEqual(rig.metrics.totals, { pf: 1 });
        assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'done' }]);
      });
    });
  }

  test('a Block claim is served where Block works', async () => {
    const claim = { spec: { volumeMode: 'Block' } };
    await once({ methods: { supportsBlock: () => true }, claim }, assertProvisioned);
  });

  test('a Filesystem claim needs nobody to say that Block works', async () => {
    await once({ claim: { spec: { volumeMode: 'Filesystem' } } }, assertProvisioned);
  });

  const isTaken = (name: string): string =>
    `PersistentVolume "${name}" exists already and is not for this claim. Delete it, or recreate the claim`;
  const reference = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'ns', name: 'a' };

  for (const { title, claimRef, isOurs } of [
    { title: 'a volume that is nobody’s', claimRef: undefined, isOurs: false },
    {
      title: 'a volume for another claim of the same name',
      claimRef: (): object => ({ ...reference, uid: 'other' }),
      isOurs: false,
    },
    { title: 'a volume for the claim', claimRef: (uid: string): object => ({ ...reference, uid }), isOurs: true },
    { title: 'a volume that somebody reserved for the claim by name', claimRef: () => reference, isOurs: true },
  ]) {
    for (const { whose, phase, fields } of [
      { whose: 'of ours', phase: 'Available', fields: {} },
      { whose: 'of ours that is bound', phase: 'Bound', fields: {} },
      { whose: 'of another provisioner', phase: 'Available', fields: { annotations: {}, spec: foreign } },
    ]) {
      test(`${title}, ${whose}, stops it ${isOurs ? 'in silence' : 'with an event'}`, async () => {
        const before = (rig: Rig, uid: string): void => {
          const spec = { ...fields.spec, ...(claimRef && { claimRef: claimRef(uid) }) };
          rig.addVolume(`pvc-${uid}`, phase, { ...fields, spec });
        };
        await once({ before }, (scene) => {
          assertStopped(scene, isOurs ? undefined : isTaken(`pvc-${scene.uid}`));
        });
      });
    }
  }

  test('a volume that was made for it under another name, and is not bound yet, is waited for', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    const { uid } = rig.addClaim().metadata;
    rig.addVolume('vol-1', 'Available', { spec: { claimRef: { ...reference, uid } } });
    await rig.start();
    assert.deepEqual(rig.provisioner.provisions, []);
    const [sync] = rig.limiter.syncs(uid);
    assert.equal(sync?.end, 'retry');
  });

  for (const { title, phase, fields } of [
    { title: 'is on its way out', phase: 'Released', fields: {} },
    { title: 'was made by an administrator', phase: 'Available', fields: { annotations: {} } },
    { title: 'is too small for it', phase: 'Available', fields: { spec: { capacity: { storage: '1Mi' } } } },
    { title: 'has other access modes', phase: 'Available', fields: { spec: { accessModes: ['ReadOnlyMany'] } } },
    { title: 'has another volume mode', phase: 'Pending', fields: { spec: { volumeMode: 'Block' } } },
  ] satisfies { title: string; phase: string; fields: VolumeSketch }[]) {
    test(`a volume for it under another name that ${title} does not hold it back`, async () => {
      await using rig = await Rig.prepare();
      rig.addClass();
      const { uid } = rig.addClaim().metadata;
      rig.addVolume('vol-1', phase, { ...fields, spec: { ...fields.spec, claimRef: { ...reference, uid } } });
      await rig.start();
      await rig.until('the volume', () => rig.volume(`pvc-${uid}`));
    });
  }

  test('a change of the claim before it is bound does not provision it again', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    const { uid } = rig.addClaim().metadata;
    await rig.start();
    rig.touchClaim();
    await rig.synced(uid, 2);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.writes, ['POST /api/v1/persistentvolumes']);
    assert.deepEqual(rig.metrics.totals, { pt: 1, pf: 1 });
    assert.deepEqual(rig.limiter.syncs(uid), [{ end: 'done' }, { end: 'done' }]);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
  });

  test('a change before the cache shows the volume does not provision the claim again', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    const stall = rig.fault({
      match: { resource: 'persistentvolumes', watch: true },
      action: { type: 'watchDelay', ms: 1500 },
    });
    const { uid } = rig.addClaim().metadata;
    rig.startOnly();
    await rig.until('the volume on the server', () => rig.volumes.length === 1);
    await rig.synced(uid, 1);
    rig.touchClaim();
    await rig.synced(uid, 2);
    assert.ok(stall.hits > 0);
    assert.deepEqual(rig.limiter.syncs(`pvc-${uid}`), [], 'the cache does not show the volume yet');
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.metrics.totals, { pt: 1, pf: 1 });
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
  });

  for (const { title, isRestored } of [
    { title: 'stops it in silence', isRestored: false },
    { title: 'does not stop it where the API server has none, as after the restore of a backup', isRestored: true },
  ]) {
    test(`a volume for it in a cache whose watch was interrupted ${title}`, async () => {
      await using rig = await Rig.prepare();
      rig.addClass();
      const { uid } = rig.addClaim().metadata;
      const name = `pvc-${uid}`;
      rig.addVolume(name, 'Available', { spec: { claimRef: { ...reference, uid } } });
      const match = { resource: 'persistentvolumes', watch: true };
      rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
      const cut = rig.fault({ match, action: { type: 'watchCut', afterEvents: 1 }, times: 1 });
      const stalled = rig.fault({ match, action: { type: 'watchStall' } });
      rig.startOnly();
      await rig.synced(uid);
      await rig.until('the watch', () => cut.hits === 1);
      rig.touchVolume(name);
      await rig.until('the silent watch', () => stalled.hits === 1);
      if (isRestored) rig.api.delete(resource.volumes, { name });
      rig.touchClaim();
      await rig.synced(uid, 2);
      await rig.stop();
      assert.deepEqual(
        rig.limiter.syncs(uid).map(({ end }) => end),
        ['done', 'done'],
      );
      const made = rig.provisioner.provisions.map(({ volumeName }) => volumeName);
      assert.deepEqual(made, isRestored ? [name] : []);
      assert.ok(rig.volume(name));
      assert.deepEqual(rig.reasons, isRestored ? ['Provisioning', 'ProvisioningSucceeded'] : []);
    });
  }

  test('a volume that was saved, came into no cache and is gone does not hold it back', async () => {
    const clock = new ManualClock();
    await using rig = await Rig.prepare({ clock });
    rig.addClass();
    const match = { resource: 'persistentvolumes', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    const stalled = rig.fault({ match, action: { type: 'watchStall' } });
    const { uid } = rig.addClaim().metadata;
    const name = `pvc-${uid}`;
    rig.startOnly();
    await rig.until('the silent watch', () => stalled.hits > 0);
    await rig.synced(uid);
    rig.touchClaim();
    await rig.synced(uid, 2);
    assert.equal(rig.provisioner.provisions.length, 1);
    rig.api.delete(resource.volumes, { name });
    rig.setFinalizers(name, []);
    assert.equal(rig.volume(name), undefined);
    for (let syncs = 2; rig.volume(name) === undefined; syncs += 1) {
      await clock.advance(10_000);
      await rig.synced(uid, syncs + 1);
    }
    assert.deepEqual(
      rig.provisioner.provisions.map(({ volumeName }) => volumeName),
      [name, name],
    );
  });

  test('a claim that is being deleted but still there is provisioned', async () => {
    const before = (rig: Rig): void => {
      rig.api.delete(resource.claims, { namespace: 'ns', name: 'a' });
      assert.ok(rig.claim()?.metadata.deletionTimestamp);
    };
    await once({ before }, assertProvisioned);
  });

  test('the name of the volume to look for comes from the hook', async () => {
    const volumeName = ({ metadata }: { metadata: { uid?: string } }): string => `x-${metadata.uid ?? ''}`;
    const before = (rig: Rig, uid: string): void => {
      rig.addVolume(`x-${uid}`, 'Available', { spec: { nfs: { server: 's', path: '/p' } }, annotations: {} });
    };
    await once({ controller: { volumeName }, before }, (scene) => {
      assertStopped(scene, isTaken(`x-${scene.uid}`));
    });
  });

  test('the kind of the data source labels the metric', async () => {
    const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' };
    await once({ claim: { spec: { dataSource } } }, (scene) => {
      assertProvisioned(scene);
      assert.deepEqual(scene.rig.metrics.counted[0]?.labels, { class: 'c1', source: 'VolumeSnapshot' });
    });
  });
});
