/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { createNode, createPod, deletePod } from '../support/scheduled-pod.ts';
import { openScene, type Scene } from '../support/scene.ts';

describe('a claim whose volume would get a name that is taken', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  for (const { whose, csi } of [
    { whose: 'of the same driver', csi: () => ({ driver: scene.driver.driverName, volumeHandle: 'of-somebody-else' }) },
    { whose: 'of another driver', csi: () => ({ driver: 'elsewhere.example.com', volumeHandle: 'h' }) },
  ]) {
    test(`is bound once that PersistentVolume, ${whose}, is deleted`, async (t) => {
      const { core } = scene.admin;
      const nodeName = `${scene.namespace}-node`;
      t.after(await createNode(scene, { name: nodeName }));
      const className = await scene.createClass({ volumeBindingMode: 'WaitForFirstConsumer' });
      const claim = await scene.createClaim({ className });
      const { name: claimName = '', uid = '' } = claim.metadata ?? {};
      const name = `pvc-${uid}`;
      await core.createPersistentVolume({
        body: {
          metadata: { name },
          spec: {
            capacity: { storage: '1Gi' },
            accessModes: ['ReadWriteOnce'],
            persistentVolumeReclaimPolicy: 'Retain',
            storageClassName: 'of-nobody',
            claimRef: { namespace: scene.namespace, name: 'somebody-else' },
            csi: csi(),
          },
        },
      });
      const pod = await createPod(scene, claimName, nodeName);
      const failed = await scene.event(claim, 'ProvisioningFailed');
      assert.match(failed.message ?? '', /exists already and is not for this claim/);
      await core.deletePersistentVolume({ name });
      const { volume } = await scene.bound(claimName);
      assert.equal(volume.metadata?.name, name);
      await deletePod(scene, pod);
      assert.notEqual(volume.spec?.csi?.volumeHandle, csi().volumeHandle);
    });
  }
});
