/** The gate VolumeAttributesClass, and what the API server serves. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { driverName } from '../../support/api-scene.ts';
import { Scene } from '../csi/scene.ts';

const resource = 'volumeattributesclasses.storage.k8s.io';
const gold = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttributesClass',
  metadata: { name: 'gold' },
  driverName,
  parameters: { iops: '9' },
};
const disabled =
  'Disabling VolumeAttributesClass feature gate because the VolumeAttributesClass v1 API is not available';
const only = (version: string) => ({ versions: { [resource]: [version] } });
const none = { disabledResources: [resource] };

/** The program with a claim that names the class. */
async function start(served: typeof none | ReturnType<typeof only>, gate?: boolean): Promise<Scene> {
  const scene = await Scene.start({
    controller: ['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'],
    objects: [gold],
    served,
    flags: gate === undefined ? [] : [`--feature-gates=VolumeAttributesClass=${gate}`],
  });
  scene.addClaim('c1', { volumeAttributesClassName: 'gold' });
  return scene;
}

/** The class of the claim's volume, and the parameters that the driver got. */
async function applied(scene: Scene): Promise<unknown[]> {
  const { spec } = (await scene.volume()) as { spec: { volumeAttributesClassName?: string } };
  const parameters = scene.driver.callsOf('CreateVolume')[0]?.request['mutable_parameters'];
  return [spec.volumeAttributesClassName, parameters];
}

describe('the gate VolumeAttributesClass', () => {
  for (const gate of [undefined, true]) {
    test(`${gate === undefined ? 'that is not named' : 'switched on'}: classes are read as v1beta1 where only that is served`, async () => {
      await using scene = await start(only('v1beta1'), gate);
      assert.deepEqual(await applied(scene), ['gold', { iops: '9' }]);
      assert.ok(!scene.program.lines.some((line) => line.includes(disabled)));
    });
  }

  test('that is not named: where no version is served, the class is left out and an event says so', async () => {
    await using scene = await start(none);
    await scene.program.logged(disabled);
    assert.deepEqual(await applied(scene), [undefined, undefined]);
    const event = await scene.event('VolumeAttributesClassNotApplied');
    assert.equal(event.type, 'Warning');
    assert.equal(event.count, 1);
  });

  test('switched on: where no version is served, the claim waits for it', async () => {
    await using scene = await start(none, true);
    const { message } = await scene.event('ProvisioningFailed');
    assert.match(message, /the server could not find the requested resource/);
    assert.deepEqual(scene.driver.callsOf('CreateVolume'), []);
  });

  test('switched off: the class is left out without an event', async () => {
    await using scene = await start(none, false);
    assert.deepEqual(await applied(scene), [undefined, undefined]);
    await scene.event('ProvisioningSucceeded');
    assert.deepEqual(
      scene.events().filter(({ reason }) => reason.startsWith('Volume')),
      [],
    );
  });
});
