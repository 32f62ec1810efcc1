import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { annotation, F, pvProtection, Rig, type VolumeSketch } from './rig.ts';

const path = '/api/v1/persistentvolumes/v';
const retain = { persistentVolumeReclaimPolicy: 'Retain' };
const nfs = { nfs: { server: 's', path: '/p' } };

interface FinalizerCase {
  title: string;
  /** Default on. */
  addFinalizer?: boolean;
  phase?: string;
  volume: VolumeSketch;
  /** Body of the only PATCH; absent: nothing is written. */
  patch?: object;
  /** Finalizers afterwards; `gone` when nothing holds the volume any more. */
  after: string[] | 'gone';
}

const cases: FinalizerCase[] = [
  {
    title: 'a bound volume without finalizers gets ours',
    volume: {},
    patch: { finalizers: [F] },
    after: [F],
  },
  {
    title: 'ours is added behind those of others',
    volume: { finalizers: [pvProtection] },
    patch: { '$setElementOrder/finalizers': [pvProtection, F], finalizers: [F] },
    after: [pvProtection, F],
  },
  { title: 'ours is not added twice', volume: { finalizers: [F] }, after: [F] },
  {
    title: 'a volume that is being deleted gets no finalizer',
    volume: { finalizers: [pvProtection], terminating: true },
    after: [pvProtection],
  },
  { title: 'a volume that is not bound gets no finalizer', phase: 'Available', volume: {}, after: [] },
  {
    title: 'a volume that is to be kept loses ours, not those of others',
    volume: { finalizers: [F, pvProtection], spec: retain },
    patch: { '$deleteFromPrimitiveList/finalizers': [F], '$setElementOrder/finalizers': [pvProtection] },
    after: [pvProtection],
  },
  {
    title: 'when ours was the only one the list goes',
    volume: { finalizers: [F], spec: retain },
    patch: { finalizers: null },
    after: [],
  },
  {
    title: 'with the option off ours is taken away',
    addFinalizer: false,
    volume: { finalizers: [F] },
    patch: { finalizers: null },
    after: [],
  },
  {
    title: 'with the option off ours is taken from a volume that is being deleted, which then goes',
    addFinalizer: false,
    volume: { finalizers: [F], terminating: true },
    patch: { finalizers: null },
    after: 'gone',
  },
  {
    title: 'a static volume of our driver is ours',
    volume: { annotations: {} },
    patch: { finalizers: [F] },
    after: [F],
  },
  {
    title: 'a static volume of another driver is not ours',
    volume: { annotations: {}, spec: { csi: { driver: 'other', volumeHandle: 'h' } } },
    after: [],
  },
  { title: 'a volume without any driver is not ours', volume: { annotations: {}, spec: nfs }, after: [] },
  {
    title: 'a volume without any driver that was migrated to our driver is ours',
    volume: { annotations: { [annotation.migratedTo]: 'drv' }, spec: nfs },
    patch: { finalizers: [F] },
    after: [F],
  },
  {
    title: 'a volume of an in-tree plugin that was migrated to our driver is ours',
    volume: { annotations: { [annotation.provisionedBy]: 'in-tree', [annotation.migratedTo]: 'drv' }, spec: nfs },
    patch: { finalizers: [F] },
    after: [F],
  },
  {
    title: 'who made a volume counts more than its driver',
    volume: { annotations: { [annotation.provisionedBy]: 'other' } },
    after: [],
  },
];

describe('our finalizer on volumes', () => {
  for (const { title, addFinalizer = true, phase = 'Bound', volume, patch, after } of cases) {
    test(title, async () => {
      await using rig = await Rig.prepare({ controller: { addFinalizer } });
      rig.addVolume('v', phase, volume);
      await rig.start();
      await rig.settle(); // the change of our own comes back
      await rig.stop();
      assert.deepEqual(rig.writes, patch === undefined ? [] : [`PATCH ${path}`]);
      if (patch !== undefined) {
        const [{ body, contentType } = {}] = rig.wire.writes;
        assert.equal(contentType, 'application/strategic-merge-patch+json');
        assert.deepEqual(body, { metadata: patch });
        assert.doesNotMatch(JSON.stringify(body), /resourceVersion/);
      }
      if (after === 'gone') assert.equal(rig.volume('v'), undefined);
      else assert.deepEqual(rig.volume('v')?.metadata.finalizers ?? [], after);
      assert.deepEqual(rig.provisioner.deletions, []);
      assert.deepEqual(rig.events, []);
      assert.deepEqual(rig.metrics.totals, {});
    });
  }

  test('a patch that is refused is repeated, without event and metric', async () => {
    await using rig = await Rig.prepare({ controller: { addFinalizer: true } });
    rig.addVolume('v', 'Bound');
    rig.refuse('patch', 'persistentvolumes', { code: 403, reason: 'Forbidden', message: 'no', times: 1 });
    await rig.start();
    assert.equal(rig.limiter.syncs('v')[0]?.end, 'retry');
    const { err } = rig.log.find(({ message }) => message.startsWith('Error syncing volume'))?.fields as { err: Error };
    assert.equal(err.message, `failed to modify finalizers to [${F}] on volume v err: no`);
    rig.controller.wakeVolume('v');
    await rig.synced('v', 2);
    await rig.stop();
    assert.deepEqual(rig.writes, [`PATCH ${path}`, `PATCH ${path}`]);
    assert.deepEqual(rig.volume('v')?.metadata.finalizers, [F]);
    assert.deepEqual(rig.events, []);
    assert.deepEqual(rig.metrics.totals, {});
  });
});
