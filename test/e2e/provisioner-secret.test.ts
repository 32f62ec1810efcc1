/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

describe('a class that names a provisioner secret', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  /** Every claim brings a secret named after it; the driver insists on the key. */
  const perClaim = {
    'csi.storage.k8s.io/provisioner-secret-name': '${pvc.name}-credentials',
    'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
    requireSecret: 'password',
    requireSecretOnDelete: 'password',
  };
  const createSecret = (name: string, password: string) =>
    scene.admin.core.createNamespacedSecret({
      namespace: scene.namespace,
      body: { metadata: { name }, stringData: { password } },
    });

  test('hands its content to the driver on create and on delete, and to nobody else', async () => {
    const password = 'correct-horse-battery-staple';
    await createSecret('private-credentials', password);
    const className = await scene.createClass({ parameters: perClaim });
    const claim = await scene.createClaim({ name: 'private', className });
    const { volume } = await scene.bound('private');
    const annotations = volume.metadata?.annotations ?? {};
    assert.equal(annotations['volume.kubernetes.io/provisioner-deletion-secret-name'], 'private-credentials');
    assert.equal(annotations['volume.kubernetes.io/provisioner-deletion-secret-namespace'], scene.namespace);
    await scene.deleteClaim('private');
    await scene.volumeGone(volume.metadata?.name ?? '');

    for (const method of ['CreateVolume', 'DeleteVolume']) {
      const [call] = await scene.driver.calls(method);
      assert.deepEqual(call?.request.secrets, ['password'], method);
    }
    const [create] = await scene.driver.calls('CreateVolume');
    const { requireSecret, requireSecretOnDelete } = perClaim;
    assert.deepEqual(create?.request.parameters, { requireSecret, requireSecretOnDelete });
    const seen = [JSON.stringify(volume), JSON.stringify(await scene.events(claim)), scene.sidecar.log()].join('\n');
    for (const form of [password, Buffer.from(password).toString('base64')]) {
      assert.equal(seen.includes(form), false, 'the password shows in the volume, an event or the log');
    }
    assert.match(scene.sidecar.log(), /CreateVolume/); // the log did speak of the call
  });

  test('says which secret is missing, and goes on once it is there', async () => {
    const className = await scene.createClass({ parameters: perClaim });
    const claim = await scene.createClaim({ name: 'early', className });
    const failed = await scene.event(claim, 'ProvisioningFailed');
    assert.equal(failed.type, 'Warning');
    const text = `error getting secret early-credentials in namespace ${scene.namespace}: secrets "early-credentials" not found`;
    assert.ok(failed.message?.includes(text), failed.message);
    await createSecret('early-credentials', 'better late than never');
    await scene.bound('early');
  });
});
