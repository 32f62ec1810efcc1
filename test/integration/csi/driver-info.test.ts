import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { probeUntilReady, readCapabilities, readDriverInfo } from '../../../src/csi/driver-info.ts';
import { provisionerIdentity } from '../../../src/csi/identity.ts';
import { recordedLogger, type LogLine } from '../../support/fakes/recorded-logger.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { Rig } from '../../support/csi-rig.ts';

describe('readDriverInfo', () => {
  test('gives name and version', async () => {
    await using rig = await Rig.start();
    assert.deepEqual(await readDriverInfo(rig.calls), { name: 'd.example.com', vendorVersion: '1.2.3' });
  });

  test('the version may be absent', async () => {
    await using rig = await Rig.start();
    rig.driver.next('GetPluginInfo', { name: 'd' });
    assert.deepEqual(await readDriverInfo(rig.calls), { name: 'd', vendorVersion: '' });
  });

  const failures = [
    { answer: {}, message: 'Error getting CSI driver name: driver name is empty' },
    {
      answer: new DriverFailure(status.UNAVAILABLE, 'not set up'),
      message: 'Error getting CSI driver name: rpc error: code = Unavailable desc = not set up',
    },
  ];
  for (const { answer, message } of failures) {
    test(`fails with: ${message}`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('GetPluginInfo', answer);
      await assert.rejects(readDriverInfo(rig.calls), { message });
    });
  }
});

describe('readCapabilities', () => {
  test('skips empty, unknown and repeated entries and is frozen', async () => {
    await using rig = await Rig.start();
    rig.driver.next('GetPluginCapabilities', {
      capabilities: [
        {},
        { service: {} },
        { service: { type: 'CONTROLLER_SERVICE' } },
        { volume_expansion: { type: 1 } },
      ],
    });
    rig.driver.next('ControllerGetCapabilities', {
      // 11 was VOLUME_CONDITION in CSI 1.12
      capabilities: [{}, ...[99, 11, 'CLONE_VOLUME', 'CLONE_VOLUME'].map((type) => ({ rpc: { type } }))],
    });
    const capabilities = await readCapabilities(rig.calls);
    const present = Object.entries(capabilities).flatMap(([name, has]) => (has === true ? [name] : []));
    assert.deepEqual(present, ['controllerService', 'cloneVolume']);
    assert.ok(Object.isFrozen(capabilities));
  });

  test('fails with the text of the reference', async () => {
    await using rig = await Rig.start();
    rig.driver.next('ControllerGetCapabilities', new DriverFailure(status.INTERNAL, 'x'));
    await assert.rejects(readCapabilities(rig.calls), {
      message: 'Error getting CSI driver capabilities: rpc error: code = Internal desc = x',
    });
  });
});

describe('probeUntilReady', () => {
  for (const [name, answer] of [
    ['absent', {}],
    ['true', { ready: { value: true } }],
  ] as const) {
    test(`ready ${name} is ready at the first look`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('Probe', answer);
      await probeUntilReady({ calls: rig.calls, logger: silentLogger, clock: systemClock });
      assert.equal(rig.driver.callsOf('Probe').length, 1);
    });
  }

  test('asks once a second while the driver is not ready or too slow', async () => {
    const lines: LogLine[] = [];
    await using rig = await Rig.start();
    rig.driver.next('Probe', { ready: { value: false } }, new DriverFailure(status.DEADLINE_EXCEEDED, 'slow'));
    const clock = new ManualClock();
    let ready = false;
    const probing = probeUntilReady({ calls: rig.calls, logger: recordedLogger(lines), clock }).then(
      () => (ready = true),
    );
    for (let call = 1; call <= 3; call += 1) {
      await rig.driver.called('Probe', call);
      if (call < 3) await clock.until(() => rig.driver.callsOf('Probe').length > call);
    }
    await probing;
    assert.ok(ready);
    assert.equal(clock.monotonicMs(), 2000);
    assert.deepEqual(
      lines.map(({ message }) => message),
      [
        'Probing CSI driver for readiness',
        'CSI driver is not ready',
        'Probing CSI driver for readiness',
        'CSI driver probe timed out',
        'Probing CSI driver for readiness',
      ],
    );
  });

  for (const code of [status.UNIMPLEMENTED, status.UNAVAILABLE, status.INTERNAL]) {
    test(`code ${code} is fatal`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('Probe', new DriverFailure(code, 'x'));
      const probing = probeUntilReady({ calls: rig.calls, logger: silentLogger, clock: systemClock });
      await assert.rejects(probing, { message: /^CSI driver probe failed: rpc error: code = \w+ desc = x$/ });
    });
  }

  test('ends when its signal aborts', async () => {
    await using rig = await Rig.start();
    rig.driver.always('Probe', { ready: { value: false } });
    const stop = new AbortController();
    const probing = probeUntilReady({
      calls: rig.calls,
      logger: silentLogger,
      clock: systemClock,
      signal: stop.signal,
    });
    await rig.driver.called('Probe');
    stop.abort(new Error('stopping'));
    await assert.rejects(probing, { message: 'stopping' });
  });
});

describe('provisionerIdentity', () => {
  test('holds the time, a number without padding and the driver', () => {
    const identity = provisionerIdentity({ driverName: 'd', wallMs: 1763640000000.7, random: 0.00425 });
    assert.equal(identity, '1763640000000-42-d');
  });

  test('holds the node in node deployment', () => {
    const identity = provisionerIdentity({ driverName: 'd', wallMs: 1, random: 0.9999999, nodeName: 'n1' });
    assert.equal(identity, '1-9999-d-n1');
  });
});
