/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** A volume that was imported under another name, as one moves it to another class or cluster. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

describe('storage that two PersistentVolumes have', () => {
  let scene: Scene;
  before(async () => {
    // A repeat would come too late: what happens is woken by the other volume.
    scene = await openScene({ sidecarFlags: ['--retry-interval-start=1h', '--retry-interval-max=1h'] });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  for (const { title, annotations, persistentVolumeReclaimPolicy } of [
    { title: 'of a static volume', annotations: {}, persistentVolumeReclaimPolicy: 'Retain' },
    {
      title: 'of a volume that another provisioner is said to have made',
      annotations: { 'pv.kubernetes.io/provisioned-by': 'another.example.com' },
      persistentVolumeReclaimPolicy: 'Delete',
    },
  ]) {
    test(`is kept when the claim of the first is deleted, until the second is gone: ${title}`, async () => {
      const { core } = scene.admin;
      const { metadata } = await scene.createClaim({ className: await scene.createClass() });
      const { volume } = await scene.bound(metadata?.name ?? '');
      const { csi, capacity, accessModes } = volume.spec ?? {};
      const name = `${scene.namespace}-imported`;
      await core.createPersistentVolume({
        body: {
          metadata: { name, annotations },
          spec: {
            ...(capacity && { capacity }),
            ...(accessModes && { accessModes }),
            ...(csi && { csi: { driver: csi.driver, volumeHandle: csi.volumeHandle } }),
            persistentVolumeReclaimPolicy,
            storageClassName: 'none',
          },
        },
      });
      await scene.deleteClaim(metadata?.name ?? '');
      const volumeName = volume.metadata?.name ?? '';
      const waiting = await scene.eventually(async () => {
        const found = (await scene.volumeEvents(volume)).find(({ reason }) => reason === 'VolumeDeletionWaiting');
        assert.ok(found);
        return found;
      });
      const text = `persistentvolume ${volumeName} has the same storage as persistentvolume ${name}, which is not to be deleted`;
      assert.deepEqual([waiting.type, waiting.message], ['Warning', text]);
      assert.deepEqual(await scene.driver.volumeIds(), [csi?.volumeHandle]);

      await core.deletePersistentVolume({ name });
      await scene.volumeGone(volumeName);
      assert.deepEqual(await scene.driver.volumeIds(), []);
      const events = await scene.volumeEvents(volume);
      assert.deepEqual(
        events.filter(({ type, reason }) => type === 'Warning' && reason !== 'VolumeDeletionWaiting'),
        [],
      );
    });
  }
});
