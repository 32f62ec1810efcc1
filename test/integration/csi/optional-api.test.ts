import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { OptionalApi } from '../../../src/csi/optional-api.ts';
import { volumeSnapshots } from '../../../src/csi/sources/snapshot-source.ts';
import { volumeAttributesClasses } from '../../../src/csi/volume-attributes-class.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';

describe('OptionalApi', () => {
  const cases: { name: string; disabledResources: string[]; want: string }[] = [
    { name: 'a served kind', disabledResources: [], want: 'present' },
    { name: 'a group without the kind', disabledResources: ['volumeattributesclasses.storage.k8s.io'], want: 'absent' },
    { name: 'no such group', disabledResources: ['storage.k8s.io'], want: 'absent' },
  ];
  for (const { name, disabledResources, want } of cases) {
    test(`${name} is ${want}`, async () => {
      await using sandbox = await SandboxApi.start({ disabledResources });
      const { client } = sandbox;
      const clock = new ManualClock();
      const api = new OptionalApi({ client, resource: volumeAttributesClasses, clock, logger: silentLogger });
      assert.equal(api.presence, 'unknown');
      assert.equal(await api.check(), want);
      assert.equal(api.presence, want);
    });
  }

  const resource = 'volumeattributesclasses.storage.k8s.io';
  for (const { versions, want } of [
    { versions: ['v1', 'v1beta1'], want: 'v1' },
    { versions: ['v1beta1'], want: 'v1beta1' },
    { versions: ['v1alpha1'], want: undefined },
  ]) {
    test(`of the versions v1 and v1beta1, a server of ${versions.join(' and ')} has ${want ?? 'none'}`, async () => {
      await using sandbox = await SandboxApi.start({ versions: { [resource]: versions } });
      const api = new OptionalApi({
        client: sandbox.client,
        resource: volumeAttributesClasses,
        olderVersions: ['v1beta1'],
        clock: new ManualClock(),
        logger: silentLogger,
      });
      assert.equal(await api.check(), want === undefined ? 'absent' : 'present');
      assert.deepEqual(api.served, { ...volumeAttributesClasses, version: want ?? 'v1' });
    });
  }

  test('an answer that says nothing leaves what was known', async () => {
    await using sandbox = await SandboxApi.start();
    const { client } = sandbox;
    const api = new OptionalApi({ client, resource: volumeSnapshots, clock: new ManualClock(), logger: silentLogger });
    const fault = sandbox.server.faults.add({ action: { type: 'status', code: 403, reason: 'Forbidden' } });
    assert.equal(await api.check(), 'unknown');
    fault.remove();
    assert.equal(await api.check(), 'present');
    sandbox.server.faults.add({ action: { type: 'status', code: 403, reason: 'Forbidden' } });
    assert.equal(await api.check(), 'unknown');
    assert.equal(api.presence, 'present');
  });

  test('an API that is installed later is noticed within a minute', async () => {
    await using sandbox = await SandboxApi.start();
    const { client } = sandbox;
    const clock = new ManualClock({ turns: 50 });
    const missing = sandbox.server.faults.add({ action: { type: 'status', code: 404, reason: 'NotFound' } });
    const api = new OptionalApi({ client, resource: volumeSnapshots, clock, logger: silentLogger });
    assert.equal(await api.check(), 'absent');
    let present = false;
    const waiting = api.waitUntilPresent(new AbortController().signal).then(() => (present = true));
    await clock.until(() => missing.hits >= 3);
    assert.equal(present, false);
    missing.remove();
    await clock.advance(60_000);
    await waiting;
    assert.equal(api.presence, 'present');
  });

  test('the wait ends when its signal aborts', async () => {
    await using sandbox = await SandboxApi.start({ disabledResources: ['snapshot.storage.k8s.io'] });
    const { client } = sandbox;
    const clock = new ManualClock();
    const api = new OptionalApi({ client, resource: volumeSnapshots, clock, logger: silentLogger });
    const stop = new AbortController();
    const waiting = api.waitUntilPresent(stop.signal);
    stop.abort(new Error('stopping'));
    await assert.rejects(waiting, { message: 'stopping' });
  });
});
