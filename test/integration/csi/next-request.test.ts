/** What the controller has the CSI provisioner request after an attempt that failed: the same volume, or one planned anew. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { TopologyHook } from '../../../src/csi/topology/planned-topology.ts';
import { DriverFailure, type RecordedCall } from '../../support/fakes/recording-driver.ts';
import { Rig as CsiRig } from '../../support/csi-rig.ts';
import { recoveryScene } from '../provision/recovery-scene.ts';
import { annotation } from '../provision/rig.ts';

/** A claim for which a node is selected, or none, a driver with topology, and the controller between them. */
async function startScene(node = '') {
  const zone = { now: 'a' };
  const topology: TopologyHook = {
    requirements: () => {
      const segments = { zone: zone.now };
      return { requisite: [{ segments }], preferred: [{ segments }] };
    },
  };
  const csi = await CsiRig.start({
    plugin: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
    settings: { driverName: 'drv', topology },
  });
  const scene = await recoveryScene({
    class: { parameters: { type: 'old' }, ...(node !== '' && { volumeBindingMode: 'WaitForFirstConsumer' }) },
    rig: { controller: { provisioner: csi.provisioner } },
  });
  const { rig, name } = scene;
  const select = (selected: string): void =>
    void rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv', [annotation.node]: selected } });
  if (node !== '') select(node);
  return {
    rig,
    driver: csi.driver,
    journal: scene.journal,
    /** From now on volumes are planned for this zone. */
    move: (to: string): void => void (zone.now = to),
    select,
    volume: () => scene.passUntil('the volume', () => rig.volume(name)),
    failed: (text: string) =>
      rig.until('the event', () =>
        rig.events.some(({ reason, message }) => reason === 'ProvisioningFailed' && message.includes(text)),
      ),
    [Symbol.asyncDispose]: async () => {
      await rig[Symbol.asyncDispose]();
      await csi[Symbol.asyncDispose]();
    },
  };
}

function zoneOf({ request }: RecordedCall): unknown {
  const { requisite } = request['accessibility_requirements'] as { requisite: { segments: { zone: string } }[] };
  return requisite[0]?.segments.zone;
}

describe('the next request for a claim', () => {
  const outcomes = [
    { name: 'full, no node chosen', code: status.RESOURCE_EXHAUSTED, node: '', second: 'b' },
    { name: 'full, a node chosen', code: status.RESOURCE_EXHAUSTED, node: 'n1', second: 'b' },
    { name: 'OutOfRange', code: status.OUT_OF_RANGE, node: 'n1', second: 'b' },
    { name: 'Aborted', code: status.ABORTED, node: 'n1', second: 'a' },
    { name: 'DeadlineExceeded', code: status.DEADLINE_EXCEEDED, node: 'n1', second: 'a' },
    { name: 'Unavailable', code: status.UNAVAILABLE, node: 'n1', second: 'a' },
  ];
  for (const { name, code, node, second } of outcomes) {
    test(`has ${second === 'a' ? 'the same' : 'the current'} topology after ${name}`, async () => {
      await using scene = await startScene(node);
      const { rig, driver, journal, move, select } = scene;
      driver.next('CreateVolume', new DriverFailure(code, 'said the driver'));
      await rig.start();
      await scene.failed('said the driver');
      assert.equal(journal.records.size, second === 'a' ? 1 : 0, 'what may exist stays recorded');
      if (name === 'full, a node chosen')
        await rig.until('the node to go', () => rig.claim()?.metadata.annotations?.[annotation.node] === undefined);
      move('b');
      select('n2');
      await scene.volume();
      assert.deepEqual(driver.callsOf('CreateVolume').map(zoneOf), ['a', second]);
    });
  }

  test('is the same after one with an unclear result, even if the selected node and the class have changed', async () => {
    await using scene = await startScene('n1');
    const { rig, driver, move, select } = scene;
    driver.next('CreateVolume', new DriverFailure(status.DEADLINE_EXCEEDED, 'said the driver'));
    await rig.start();
    move('b');
    await rig.recreateClass('c1', { parameters: { type: 'new' } });
    select('n2');
    await rig.until('the cache', () => rig.claimInCache('a')?.metadata.annotations?.[annotation.node] === 'n2');
    await scene.volume();
    const [first, second, ...more] = driver.callsOf('CreateVolume');
    assert.deepEqual(first?.request['parameters'], { type: 'old' });
    assert.deepEqual(second?.request, first.request);
    assert.deepEqual(more, []);
  });

  const unfit = { volume: { volume_id: 'unfit', capacity_bytes: '1' } };

  test('has the current topology after a volume that was not fit: it is deleted', async () => {
    await using scene = await startScene();
    const { rig, driver, move } = scene;
    driver.next('CreateVolume', unfit);
    await rig.start();
    await scene.failed('less than requested');
    move('b');
    await scene.volume();
    const calls = driver.calls.map(({ method, request }) => [method, request['volume_id']]);
    assert.deepEqual(calls, [
      ['CreateVolume', undefined],
      ['DeleteVolume', 'unfit'],
      ['CreateVolume', undefined],
    ]);
    assert.deepEqual(driver.callsOf('CreateVolume').map(zoneOf), ['a', 'b']);
  });

  test('is not sent before a volume that was not fit is deleted, and then it has the current topology', async () => {
    await using scene = await startScene();
    const { rig, driver, move, journal } = scene;
    const busy = new DriverFailure(status.INTERNAL, 'busy');
    driver.next('CreateVolume', unfit);
    driver.next('DeleteVolume', busy, busy, busy, busy, busy, busy);
    await rig.start();
    await scene.failed('volume is orphaned');
    assert.deepEqual([...journal.records.values()][0]?.handle, 'unfit');
    move('b');
    await scene.volume();
    const methods = driver.calls.map(({ method }) => method);
    assert.deepEqual(methods, ['CreateVolume', ...Array<string>(7).fill('DeleteVolume'), 'CreateVolume']);
    assert.deepEqual(driver.callsOf('CreateVolume').map(zoneOf), ['a', 'b']);
  });
});
