/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { openScene, type Scene } from '../support/scene.ts';

describe('a claim with an attributes class', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ rbac: ['components/attributes-classes/rbac.yaml'] });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const attributesClass = (name: string, driverName = scene.driver.driverName) =>
    scene.admin.storage.createVolumeAttributesClass({
      body: { metadata: { name }, driverName, parameters: { iops: '4000', tier: 'gold' } },
    });
  const removed = (name: string) => () => scene.admin.storage.deleteVolumeAttributesClass({ name });

  test('has its parameters sent to the driver and its name on the volume', async (t) => {
    const name = `${scene.namespace}-gold`;
    await attributesClass(name);
    t.after(removed(name));
    const className = await scene.createClass({ parameters: { colour: 'blue' } });
    const { metadata } = await scene.createClaim({ className, spec: { volumeAttributesClassName: name } });
    const { volume } = await scene.bound(metadata?.name ?? '');
    assert.equal(volume.spec?.volumeAttributesClassName, name);
    const [call] = await scene.driver.calls('CreateVolume');
    assert.deepEqual(call?.request.mutable_parameters, { iops: '4000', tier: 'gold' });
    assert.deepEqual(call.request.parameters, { colour: 'blue' });
  });

  test('that is missing is told so, and served once the class is there', async (t) => {
    const name = `${scene.namespace}-late`;
    const before = (await scene.driver.calls('CreateVolume')).length;
    const claim = await scene.createClaim({
      className: await scene.createClass(),
      spec: { volumeAttributesClassName: name },
    });
    const failed = await scene.event(claim, 'ProvisioningFailed');
    assert.equal(failed.type, 'Warning');
    const text = `volumeattributesclasses.storage.k8s.io "${name}" not found`;
    assert.ok(failed.message?.includes(text), failed.message);
    assert.equal((await scene.driver.calls('CreateVolume')).length, before);
    await attributesClass(name);
    t.after(removed(name));
    const { volume } = await scene.bound(claim.metadata?.name ?? '');
    assert.equal(volume.spec?.volumeAttributesClassName, name);
  });

  test('of another driver is refused', async (t) => {
    const name = `${scene.namespace}-foreign`;
    const before = (await scene.driver.calls('CreateVolume')).length;
    await attributesClass(name, 'elsewhere.example.com');
    t.after(removed(name));
    const claim = await scene.createClaim({
      className: await scene.createClass(),
      spec: { volumeAttributesClassName: name },
    });
    const failed = await scene.event(claim, 'ProvisioningFailed');
    assert.match(failed.message ?? '', /is for driver elsewhere\.example\.com which does not match driver name/);
    assert.equal((await scene.driver.calls('CreateVolume')).length, before);
    await scene.deleteClaim(claim.metadata?.name ?? '');
  });
});
