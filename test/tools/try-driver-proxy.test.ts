import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { CsiClient, CsiProxy } from '../../scripts/try-driver/csi-proxy.ts';
import { DriverFailure, RecordingDriver } from '../support/fakes/recording-driver.ts';

interface Rig extends AsyncDisposable {
  driver: RecordingDriver;
  proxy: CsiProxy;
  client: CsiClient;
}

async function openRig(): Promise<Rig> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'csi-proxy-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const driver = cleanup.use(await RecordingDriver.start({ socketPath: `${folder}/driver.sock` }));
  const proxy = cleanup.use(await CsiProxy.start(`${folder}/csi.sock`, `${folder}/driver.sock`));
  const client = cleanup.use(new CsiClient(`${folder}/csi.sock`));
  const owned = cleanup.move();
  return { driver, proxy, client, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const request = { name: 'pvc-1', capacity_range: { required_bytes: '7' }, parameters: { tier: 'fast' } };

describe('the proxy before a driver', () => {
  test('passes calls on, and keeps what was asked and answered', async () => {
    await using rig = await openRig();
    const { volume } = await rig.client.call('CreateVolume', request);
    assert.deepEqual(volume, { volume_id: 'vol-1', capacity_bytes: '7' });
    const [kept, ...others] = rig.proxy.calls;
    assert.deepEqual(others, []);
    assert.deepEqual([kept?.method, kept?.code, kept?.request], ['CreateVolume', 'OK', request]);
    assert.deepEqual(kept?.response, { volume });
    assert.equal(rig.driver.calls.length, 1);
  });

  test('passes an error on with its code and text', async () => {
    await using rig = await openRig();
    rig.driver.always('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'no room: 7 %'));
    await assert.rejects(rig.client.call('CreateVolume', request), {
      code: status.RESOURCE_EXHAUSTED,
      details: 'no room: 7 %',
    });
    const [kept] = rig.proxy.calls;
    assert.deepEqual([kept?.code, kept?.text], ['RESOURCE_EXHAUSTED', 'no room: 7 %']);
  });

  test('holds back the answer to one call, whose work is done, until it is released', async () => {
    await using rig = await openRig();
    const held = rig.proxy.hold('CreateVolume');
    let isAnswered = false;
    const answer = rig.client.call('CreateVolume', request).then(() => (isAnswered = true));
    assert.equal((await held.answered).code, 'OK');
    await rig.client.call('CreateVolume', { ...request, name: 'pvc-2' });
    assert.equal(isAnswered, false);
    held.release();
    await answer;
    assert.equal(rig.driver.calls.length, 2);
  });
});
