/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setHeaderOptions, PatchStrategy } from '@kubernetes/client-node';
import { openScene, type Scene } from '../support/scene.ts';

describe('the volume of a deleted claim that is still attached', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({
      driverFlags: ['--attach'],
      // A repeat would come too late: what happens is woken by the attachment.
      sidecarFlags: ['--retry-interval-start=1h', '--retry-interval-max=1h'],
      rbac: ['components/attachments/rbac.yaml'],
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  test('is deleted the moment its last attachment is gone, and not before', async () => {
    const { core, storage } = scene.admin;
    const { metadata } = await scene.createClaim({ className: await scene.createClass() });
    const { volume } = await scene.bound(metadata?.name ?? '');
    const volumeName = volume.metadata?.name ?? '';
    const attachments = ['one', 'two'].map((node) => ({ name: `${scene.namespace}-${node}`, nodeName: node }));
    for (const { name, nodeName } of attachments) {
      await storage.createVolumeAttachment({
        body: {
          metadata: { name },
          spec: { attacher: scene.driver.driverName, nodeName, source: { persistentVolumeName: volumeName } },
        },
      });
    }
    await scene.deleteClaim(metadata?.name ?? '');
    const waiting = await scene.eventually(async () => {
      const found = (await scene.volumeEvents(volume)).find(({ reason }) => reason === 'VolumeDelete');
      assert.ok(found);
      return found;
    });
    assert.equal(waiting.type, 'Normal');
    assert.match(
      waiting.message ?? '',
      new RegExp(`^persistentvolume ${volumeName} is still attached to node (one|two), waiting for detach$`),
    );

    // Further looks at the volume tell nothing again. Binding the next claim takes longer than they do.
    for (const turn of ['1', '2', '3']) {
      const body = { metadata: { annotations: { 'e2e.example.com/turn': turn } } };
      const options = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
      await core.patchPersistentVolume({ name: volumeName, body }, options);
    }
    await storage.deleteVolumeAttachment({ name: attachments[0]?.name ?? '' });
    const later = await scene.createClaim({ className: await scene.createClass() });
    await scene.bound(later.metadata?.name ?? '');
    assert.equal((await core.readPersistentVolume({ name: volumeName })).status?.phase, 'Released');
    assert.deepEqual(await scene.driver.calls('DeleteVolume'), []);
    const told = (await scene.volumeEvents(volume)).filter(({ reason }) => reason === 'VolumeDelete');
    assert.deepEqual(
      told.map(({ count }) => count ?? 1),
      [1],
    );

    await storage.deleteVolumeAttachment({ name: attachments[1]?.name ?? '' });
    await scene.volumeGone(volumeName);
    const [call, ...others] = await scene.driver.calls('DeleteVolume');
    assert.deepEqual(others, []);
    assert.ok(call);
    const failed = (await scene.volumeEvents(volume)).filter(({ type }) => type === 'Warning');
    assert.deepEqual(failed, []);
  });
});
