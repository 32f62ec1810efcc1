import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { describe, test, type TestContext } from 'node:test';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { Driver } from '../../../src/csi/driver.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { DriverFailure, RecordingDriver } from '../../support/fakes/recording-driver.ts';

/** Distinguishes the timer of the limit from all others: only that one is held still. */
const awayLimitMs = 3_600_001;

describe('a call about volumes that cannot reach the driver', () => {
  const notSent = { name: 'CsiCallError', codeName: 'Unavailable', sent: false };

  test('is not sent while the driver is away', async (context) => {
    await using rig = await connected(context);
    rig.first.kill();
    await rig.logged('Lost connection');
    await assert.rejects(rig.driver.calls.createVolume({ name: 'v' }), notSent);
    await assert.rejects(rig.driver.calls.deleteVolume({ volume_id: 'v' }), notSent);
  });

  test('is not sent while a driver that listens again has not said who it is', async (context) => {
    await using rig = await connected(context);
    await using second = await silentDriver(rig);
    await assert.rejects(rig.driver.calls.createVolume({ name: 'v' }), notSent);
    assert.deepEqual(second.callsOf('CreateVolume'), []);
  });

  test('may have been sent when the driver dies during it, or answers that it is unavailable', async (context) => {
    await using rig = await connected(context);
    const mayBeSent = { codeName: 'Unavailable', sent: true };
    rig.first.next('CreateVolume', new DriverFailure(status.UNAVAILABLE, 'No connection established'));
    await assert.rejects(rig.driver.calls.createVolume({ name: 'v' }), mayBeSent);
    rig.first.next('CreateVolume', () => new Promise<object>(() => undefined));
    const answer = rig.driver.calls.createVolume({ name: 'v' });
    await rig.first.called('CreateVolume', 2);
    rig.first.kill();
    await assert.rejects(answer, mayBeSent);
  });
});

describe('a CreateVolume that is given up', () => {
  const hang = (): Promise<object> => new Promise<object>(() => undefined);

  async function giveUp({ driver, first }: Rig): Promise<void> {
    first.next('CreateVolume', hang);
    const abort = new AbortController();
    const created = driver.calls.createVolume({ name: 'v' }, { signal: abort.signal });
    await first.called('CreateVolume');
    abort.abort(new Error('given up'));
    await assert.rejects(created, { codeName: 'Canceled' });
  }

  test('has one GetPluginInfo show that the driver has read it, which is neither counted nor traced', async (context) => {
    await using rig = await connected(context);
    await giveUp(rig);
    assert.equal(rig.driver.progress.isBehind, true);
    await rig.until(() => !rig.driver.progress.isBehind);
    assert.equal(rig.first.callsOf('GetPluginInfo').length, 2, 'with that of the start');
    for (const methods of [rig.counted, rig.observed])
      assert.equal(methods.filter((method) => method.endsWith('GetPluginInfo')).length, 1);
    rig.first.kill();
  });

  test('counts as read once the driver is gone', async (context) => {
    await using rig = await connected(context);
    rig.first.always('GetPluginInfo', hang);
    await giveUp(rig);
    await rig.first.called('GetPluginInfo', 2);
    assert.equal(rig.driver.progress.isBehind, true);
    rig.first.kill();
    await rig.logged('Lost connection');
    assert.equal(rig.driver.progress.isBehind, false);
  });
});

describe('the limit on the absence of a driver', () => {
  test('ends the wait when the driver is not back in time', async (context) => {
    await using rig = await connected(context);
    rig.first.kill();
    await rig.logged('Lost connection');
    await rig.limit.advance(awayLimitMs - 1);
    assert.deepEqual(rig.gone, []);
    await rig.limit.advance(1);
    assert.deepEqual(rig.gone, ['Lost connection to CSI driver, exiting']);
  });

  test('ends with the absence: the next one has all of it again', async (context) => {
    await using rig = await connected(context);
    rig.first.kill();
    await rig.logged('Lost connection');
    await rig.limit.advance(awayLimitMs - 1);
    const second = await RecordingDriver.start({ socketPath: rig.socketPath });
    await rig.logged('The driver came back');
    await rig.limit.advance(awayLimitMs * 2);
    second.kill();
    await rig.logged('Lost connection', 2);
    await rig.limit.advance(awayLimitMs - 1);
    assert.deepEqual(rig.gone, []);
    await rig.limit.advance(1);
    assert.equal(rig.gone.length, 1);
  });

  test('goes on while a driver that listens again does not say who it is', async (context) => {
    await using rig = await connected(context);
    await using _second = await silentDriver(rig);
    await rig.limit.advance(awayLimitMs);
    assert.equal(rig.gone.length, 1);
  });

  test('does not add a second reason when another driver answers', async (context) => {
    await using rig = await connected(context);
    rig.first.kill();
    await rig.logged('Lost connection');
    await using second = await RecordingDriver.start({ socketPath: rig.socketPath, name: 'other.example.com' });
    await second.called('GetPluginInfo');
    await rig.until(() => rig.gone.length > 0);
    await rig.limit.advance(awayLimitMs);
    assert.equal(rig.gone.length, 1);
    assert.match(rig.gone[0] ?? '', /changed its name from d\.example\.com to other\.example\.com/);
  });
});

describe('a listener for reconnects that throws', () => {
  test('keeps neither the other listeners nor the driver from work, and is reported as itself', async (context) => {
    await using rig = await connected(context);
    let notified = 0;
    rig.driver.onReconnected(() => {
      notified += 1;
      throw new Error('a defect');
    });
    rig.driver.onReconnected(() => (notified += 1));
    rig.first.kill();
    await rig.logged('Lost connection');
    await using second = await RecordingDriver.start({ socketPath: rig.socketPath });
    await rig.logged('A listener failed after the driver came back');
    await rig.driver.calls.deleteVolume({ volume_id: 'v' });
    assert.equal(rig.logs('A listener failed after the driver came back'), 1);
    assert.equal(rig.logs('The driver came back but could not be queried, retrying'), 0);
    assert.equal(second.callsOf('GetPluginInfo').length, 1);
    assert.equal(notified, 2);
  });
});

/** The driver is away, and back without saying who it is. */
async function silentDriver(rig: Rig): Promise<RecordingDriver> {
  rig.first.kill();
  await rig.logged('Lost connection');
  const second = await RecordingDriver.start({ socketPath: rig.socketPath });
  second.always('GetPluginInfo', new DriverFailure(status.UNAVAILABLE, 'not yet'));
  await second.called('GetPluginInfo');
  return second;
}

interface Rig extends AsyncDisposable {
  driver: Driver;
  first: RecordingDriver;
  socketPath: string;
  limit: ManualClock;
  /** Why there was no way on. */
  gone: string[];
  /** Methods of the calls for metrics, and of those for traces. */
  counted: string[];
  observed: string[];
  logged(message: string, times?: number): Promise<void>;
  logs(message: string): number;
  until(holds: () => boolean): Promise<void>;
}

async function connected(context: TestContext): Promise<Rig> {
  const folder = await mkdtemp(join(tmpdir(), 'csi-driver-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const socketPath = join(folder, 'csi.sock');
  const first = await RecordingDriver.start({ socketPath });
  const lines: LogLine[] = [];
  const gone: string[] = [];
  const counted: string[] = [];
  const observed: string[] = [];
  const limit = new ManualClock({ turns: 1 });
  const clock: Clock = {
    ...systemClock,
    after: (ms, run) => (ms === awayLimitMs ? limit.after(ms, run) : systemClock.after(ms, run)),
  };
  const stop = new AbortController();
  const driver = await Driver.connect({
    address: socketPath,
    timeoutMs: 5000,
    clock,
    logger: recordedLogger(lines),
    awayLimitMs,
    onGone: ({ message }) => void gone.push(message),
    onCall: ({ method }) => void counted.push(method),
    observers: [({ method }) => void observed.push(method)],
    signal: stop.signal,
  });
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await systemClock.sleep(5, { signal: context.signal });
  };
  const count = (message: string): number => lines.filter((line) => line.message === message).length;
  return {
    driver,
    first,
    socketPath,
    limit,
    gone,
    counted,
    observed,
    until,
    logs: count,
    logged: (message, times = 1) => until(() => count(message) >= times),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await driver[Symbol.asyncDispose]();
    },
  };
}
