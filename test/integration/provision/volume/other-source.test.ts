/** Volumes whose annotation names this provisioner, and whose storage is not of its backend. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import { annotation, F, resource, Rig, type RigOptions, type VolumeSketch } from '../rig.ts';

const ownsSource = ({ spec }: PersistentVolume): boolean => {
  return spec.csi === undefined ? spec.azureDisk !== undefined : spec.csi.driver === 'drv';
};
const storageKeys = ({ spec }: PersistentVolume): string[] =>
  spec.csi?.driver === 'drv' ? [spec.csi.volumeHandle] : [];

function prepare({ methods, controller, ...options }: RigOptions = {}): Promise<Rig> {
  return Rig.prepare({
    ...options,
    controller: { addFinalizer: true, failedDeleteThreshold: 0, ...controller },
    methods: { ownsSource, storageKeys, ...methods },
  });
}

const moved: VolumeSketch = { spec: { csi: { driver: 'new', volumeHandle: 'the-storage' } } };
const retain = { persistentVolumeReclaimPolicy: 'Retain' };

const eventOf = (name: string, wrong: string, cure = 'set the reclaim policy to Retain') => ({
  type: 'Warning',
  reason: 'VolumeDeletionWaiting',
  message: `persistentvolume ${name} is left as it is: ${wrong}. Correct the annotation, or ${cure}`,
  count: 1,
  object: name,
});
const byAnnotation = 'its annotation pv.kubernetes.io/provisioned-by names drv, but';
const ofNew = `${byAnnotation} its storage is of CSI driver new`;

/** Every later look at the volume. */
async function lookAgain(rig: Rig, name: string): Promise<void> {
  rig.touchVolume(name);
  await rig.settle();
  rig.controller.wakeVolume(name);
  await rig.settle();
}

describe('a released volume that names this provisioner', () => {
  const rows: { title: string; sketch: VolumeSketch; wrong: string; cure?: string }[] = [
    { title: 'of another CSI driver', sketch: moved, wrong: ofNew },
    { title: 'of another CSI driver, with our finalizer', sketch: { ...moved, finalizers: [F] }, wrong: ofNew },
    {
      title: 'of another CSI driver, being deleted and held by our finalizer',
      sketch: { ...moved, finalizers: [F], terminating: true },
      wrong: ofNew,
      cure: `remove the finalizer ${F}: then the storage stays`,
    },
    {
      title: 'of another CSI driver, to be kept, being deleted and held by our finalizer',
      sketch: { spec: { ...moved.spec, ...retain }, finalizers: [F], terminating: true },
      wrong: ofNew,
      cure: `remove the finalizer ${F}: then the storage stays`,
    },
    {
      title: 'of an NFS server',
      sketch: { spec: { nfs: { server: 's', path: '/p' } } },
      wrong: `${byAnnotation} its source is nfs`,
    },
    {
      title: 'in the annotation of a migration alone',
      sketch: {
        ...moved,
        annotations: { [annotation.provisionedBy]: 'new', 'pv.kubernetes.io/migrated-to': 'drv' },
      },
      wrong: 'its annotation pv.kubernetes.io/migrated-to names drv, but its storage is of CSI driver new',
    },
  ];
  for (const { title, sketch, wrong, cure } of rows) {
    test(`${title}, is left as it is, with one event`, async () => {
      await using rig = await prepare();
      rig.addVolume('v', 'Released', sketch);
      await rig.start();
      await lookAgain(rig, 'v');
      await lookAgain(rig, 'v');
      await rig.stop();
      assert.deepEqual(rig.provisioner.deletions, []);
      assert.deepEqual(rig.writes, []);
      assert.deepEqual(rig.events, [eventOf('v', wrong, cure)]);
      assert.deepEqual(rig.volume('v')?.metadata.finalizers ?? [], sketch.finalizers ?? []);
      assert.deepEqual(rig.metrics.totals, {});
      assert.ok(rig.limiter.syncs('v').every(({ end }) => end === 'done'));
    });
  }

  test('is reported anew when what is wrong changes, and not when it comes back', async () => {
    await using rig = await prepare({ controller: { additionalProvisionerNames: ['in-tree'] } });
    rig.addVolume('v', 'Released', moved);
    await rig.start();
    rig.annotateVolume('v', { [annotation.provisionedBy]: 'in-tree' });
    await rig.settle();
    rig.annotateVolume('v', { [annotation.provisionedBy]: 'new' });
    await rig.settle();
    rig.annotateVolume('v', { [annotation.provisionedBy]: 'in-tree' });
    await lookAgain(rig, 'v');
    await rig.stop();
    assert.deepEqual(rig.events, [eventOf('v', ofNew), eventOf('v', ofNew.replace('names drv', 'names in-tree'))]);
    assert.deepEqual(rig.provisioner.deletions, []);
  });
});

describe('a volume of ours beside one whose annotation is wrong', () => {
  test('keeps its storage although both handles are the same', async () => {
    await using rig = await prepare();
    rig.addVolume('own', 'Bound', { spec: { csi: { driver: 'drv', volumeHandle: 'the-storage' } }, finalizers: [F] });
    rig.addVolume('moved', 'Bound', moved);
    await rig.start();
    assert.deepEqual(rig.writes, [], 'a finalizer on neither');
    rig.releaseVolume('moved');
    await lookAgain(rig, 'moved');
    assert.equal(rig.provisioner.deletions.length, 0);
    rig.releaseVolume('own');
    await rig.until('its end', () => rig.volume('own') === undefined);
    assert.deepEqual(
      rig.provisioner.deletions.map(({ metadata }) => metadata.name),
      ['own'],
    );
    await rig.stop();
    assert.deepEqual(rig.events, [eventOf('moved', ofNew)]);
  });

  test('is deleted, of the plugin that the driver replaced, whatever name the annotation has', async () => {
    await using rig = await prepare({ controller: { additionalProvisionerNames: ['in-tree'] } });
    const spec = { azureDisk: { diskName: 'd', diskURI: '/subscriptions/s/d', kind: 'Managed' } };
    for (const by of ['drv', 'in-tree'])
      rig.addVolume(`of-${by}`, 'Bound', { spec, annotations: { [annotation.provisionedBy]: by } });
    await rig.start();
    for (const by of ['drv', 'in-tree']) {
      assert.deepEqual(rig.volume(`of-${by}`)?.metadata.finalizers, [F], by);
      rig.releaseVolume(`of-${by}`);
      await rig.until('its end', () => rig.volume(`of-${by}`) === undefined);
    }
    assert.deepEqual(rig.events, []);
  });
});

describe('finalizers of a volume whose annotation is wrong', () => {
  for (const { title, phase, sketch } of [
    { title: 'ours is not added', phase: 'Bound', sketch: moved },
    {
      title: 'ours is not removed where the volume is to be kept',
      phase: 'Bound',
      sketch: { spec: { ...moved.spec, ...retain }, finalizers: ['x/y', F] },
    },
    {
      title: 'ours is not removed once it is released and to be kept',
      phase: 'Released',
      sketch: { spec: { ...moved.spec, ...retain }, finalizers: ['x/y', F] },
    },
  ]) {
    test(title, async () => {
      await using rig = await prepare();
      rig.addVolume('v', phase, sketch);
      await rig.start();
      await lookAgain(rig, 'v');
      assert.deepEqual(rig.writes, []);
      await rig.stop();
      assert.deepEqual(rig.events, []);
    });
  }
});

describe('a volume of ours whose annotation is changed', () => {
  const own: VolumeSketch = { spec: { csi: { driver: 'drv', volumeHandle: 'the-storage' } } };

  test('after its deletion failed is not deleted any more, though the cache does not know it yet', async () => {
    let isAsked = false;
    const shouldDelete = ({ metadata }: PersistentVolume): boolean => {
      if (isAsked) rig.annotateVolume(metadata.name, { [annotation.provisionedBy]: 'new' });
      return true;
    };
    await using rig: Rig = await prepare({ methods: { shouldDelete } });
    rig.provisioner.deleteSteps.push(new Error('busy'));
    rig.addVolume('v', 'Released', own);
    await rig.start();
    assert.equal(rig.provisioner.deletions.length, 1);
    isAsked = true;
    rig.controller.wakeVolume('v');
    await rig.settle();
    assert.equal(rig.provisioner.deletions.length, 1);
    assert.ok(rig.volume('v'));
  });

  test('long after its release, which no event shows yet, is read live and kept', async () => {
    const shouldDelete = ({ metadata, status }: PersistentVolume): boolean => {
      if (status?.phase === 'Released') rig.annotateVolume(metadata.name, { [annotation.provisionedBy]: 'new' });
      return true;
    };
    await using rig: Rig = await prepare({ methods: { shouldDelete } });
    const volume = rig.addVolume('v', 'Bound', own);
    await rig.start();
    const lastPhaseTransitionTime = new Date(Date.now() - 5000).toISOString().replace(/\.\d+Z$/, 'Z');
    const stored = structuredClone(rig.api.get(resource.volumes, { name: volume.metadata.name }))!;
    rig.api.updateStatus(resource.volumes, { ...stored, status: { phase: 'Released', lastPhaseTransitionTime } });
    await rig.settle();
    assert.deepEqual(rig.provisioner.deletions, []);
  });

  test('while its storage is being deleted, is deleted to the end', async () => {
    await using rig = await prepare();
    rig.addVolume('v', 'Released', { ...own, finalizers: [F] });
    rig.provisioner.deleteSteps.push(() => rig.annotateVolume('v', { [annotation.provisionedBy]: 'new' }));
    await rig.start();
    await rig.until('its end', () => rig.volume('v') === undefined || rig.provisioner.deletions.length > 1);
    assert.equal(rig.provisioner.deletions.length, 1);
    assert.deepEqual(rig.events, []);
  });

  test('to the provisioner whose storage it has, is left to that one', async () => {
    await using rig = await prepare();
    rig.addVolume('v', 'Released', moved);
    await rig.start();
    rig.annotateVolume('v', { [annotation.provisionedBy]: 'new' });
    await lookAgain(rig, 'v');
    await rig.stop();
    assert.deepEqual(rig.provisioner.deletions, []);
    assert.deepEqual(rig.writes, []);
    assert.equal(rig.events.length, 1);
  });
});

test('a provisioner that does not say which sources are its own deletes every volume that names it', async () => {
  await using rig = await Rig.prepare();
  rig.addVolume('v', 'Released', moved);
  await rig.start();
  await rig.until('its end', () => rig.volume('v') === undefined);
  assert.equal(rig.provisioner.deletions.length, 1);
});
