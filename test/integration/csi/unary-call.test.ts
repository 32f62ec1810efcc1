import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DeadlineError } from '../../../src/base/abort.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { SecretString } from '../../../src/base/secret-string.ts';
import { codeName, CsiCallError, LostStatusError } from '../../../src/csi/call-error.ts';
import { type CsiCalls, csiCalls } from '../../../src/csi/csi-calls.ts';
import { CsiConnection } from '../../../src/csi/connection.ts';
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import { recordedLogger, type LogLine } from '../../support/fakes/recorded-logger.ts';
import { type Answer, DriverFailure } from '../../support/fakes/recording-driver.ts';
import { Rig } from '../../support/csi-rig.ts';
import { RawGrpcServer } from './raw-grpc-server.ts';

const csi = loadCsi();

/** Never answers; ends with the call. */
const hang = (): Promise<object> => new Promise<object>(() => undefined);

const names: [status, string][] = [
  [status.CANCELLED, 'Canceled'],
  [status.UNKNOWN, 'Unknown'],
  [status.INVALID_ARGUMENT, 'InvalidArgument'],
  [status.DEADLINE_EXCEEDED, 'DeadlineExceeded'],
  [status.NOT_FOUND, 'NotFound'],
  [status.ALREADY_EXISTS, 'AlreadyExists'],
  [status.PERMISSION_DENIED, 'PermissionDenied'],
  [status.RESOURCE_EXHAUSTED, 'ResourceExhausted'],
  [status.FAILED_PRECONDITION, 'FailedPrecondition'],
  [status.ABORTED, 'Aborted'],
  [status.OUT_OF_RANGE, 'OutOfRange'],
  [status.UNIMPLEMENTED, 'Unimplemented'],
  [status.INTERNAL, 'Internal'],
  [status.UNAVAILABLE, 'Unavailable'],
  [status.DATA_LOSS, 'DataLoss'],
  [status.UNAUTHENTICATED, 'Unauthenticated'],
];

describe('unaryCall', () => {
  for (const [code, name] of names) {
    test(`a driver's ${name} has the text of Go's client`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('Probe', new DriverFailure(code, 'the reason'));
      await assert.rejects(rig.calls.probe(), {
        name: 'CsiCallError',
        code,
        codeName: name,
        message: `rpc error: code = ${name} desc = the reason`,
      });
      assert.deepEqual(
        rig.finishedCalls.map(({ method, code: told, migrated }) => ({ method, told, migrated })),
        [{ method: '/csi.v1.Identity/Probe', told: name, migrated: false }],
      );
    });
  }

  test('a failure has a stack trace that leads to the call', async () => {
    await using rig = await Rig.start();
    rig.driver.next('Probe', new DriverFailure(status.INTERNAL, 'the reason'));
    const error = await rig.calls.probe().catch((caught: unknown) => caught as CsiCallError);
    assert.ok(error instanceof CsiCallError);
    assert.match(error.stack ?? '', /unaryCall/);
  });

  test('a code unknown to gRPC keeps its number', () => assert.equal(codeName(77), 'Code(77)'));

  test('our own deadline reads as in the reference, and the driver sees the call end', async () => {
    await using rig = await Rig.start({ timeoutMs: 500 });
    rig.driver.next('Probe', hang);
    await assert.rejects(rig.calls.probe(), {
      code: status.DEADLINE_EXCEEDED,
      message: 'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
    });
    const [call] = rig.driver.callsOf('Probe');
    assert.ok(call !== undefined);
    assert.ok(Number(call.deadline) < Date.now() + 1000, 'the driver is told how long it has');
    if (!call.cancelled.aborted) await new Promise((resolve) => call.cancelled.addEventListener('abort', resolve));
    assert.ok(call.cancelled.aborted);
  });

  for (const timeoutMs of [0, -5]) {
    test(`a timeout of ${timeoutMs} ms fails at once without calling the driver`, async () => {
      await using rig = await Rig.start();
      await assert.rejects(rig.calls.probe({ timeoutMs }), { codeName: 'DeadlineExceeded', sent: false });
      assert.deepEqual(rig.driver.calls, []);
    });
  }

  test('an aborted signal cancels the call at the driver', async () => {
    await using rig = await Rig.start();
    rig.driver.next('Probe', hang);
    const stop = new AbortController();
    const answer = rig.calls.probe({ signal: stop.signal });
    await rig.driver.called('Probe');
    stop.abort();
    await assert.rejects(answer, { message: 'rpc error: code = Canceled desc = context canceled' });
    const [call] = rig.driver.callsOf('Probe');
    if (call?.cancelled.aborted === false) {
      await new Promise((resolve) => call.cancelled.addEventListener('abort', resolve));
    }
    assert.equal(call?.cancelled.aborted, true);
  });

  test('a signal that aborts because time ran out reads as a deadline', async () => {
    await using rig = await Rig.start();
    rig.driver.next('Probe', hang);
    const stop = new AbortController();
    const answer = rig.calls.probe({ signal: stop.signal });
    await rig.driver.called('Probe');
    stop.abort(new DeadlineError('item deadline'));
    await assert.rejects(answer, { message: 'rpc error: code = DeadlineExceeded desc = context deadline exceeded' });
  });

  test('a signal that aborted before keeps the call from being made', async () => {
    await using rig = await Rig.start();
    await assert.rejects(rig.calls.probe({ signal: AbortSignal.abort() }), { codeName: 'Canceled', sent: false });
    assert.deepEqual(rig.driver.calls, []);
  });

  test('a failure that is none of the call stays what it is and counts as Unknown', async () => {
    await using rig = await Rig.start();
    await rig.connection[Symbol.asyncDispose]();
    await assert.rejects(rig.calls.probe(), { name: 'Error', message: 'the connection to the driver is closed' });
    assert.deepEqual(
      rig.finishedCalls.map(({ code }) => code),
      ['Unknown'],
    );
  });

  test('a call in flight when the driver dies fails with Unavailable: nobody knows what it did', async () => {
    await using rig = await Rig.start();
    rig.driver.next('Probe', hang);
    const answer = rig.calls.probe();
    await rig.driver.called('Probe');
    rig.driver.kill();
    await assert.rejects(answer, (error: CsiCallError) => {
      assert.equal(error.message, 'rpc error: code = Unavailable desc = error reading from server: EOF');
      assert.equal(error.sent, true);
      return true;
    });
  });

  test('requests go out with the authority localhost', async () => {
    await using rig = await Rig.start();
    await rig.calls.probe();
    assert.equal(rig.driver.calls[0]?.host, 'localhost');
  });

  test('an answer above 4 MiB is refused', async () => {
    await using rig = await Rig.start();
    rig.driver.next('GetPluginInfo', { name: 'x'.repeat(5 * 1024 * 1024) });
    await assert.rejects(rig.calls.getPluginInfo(), { codeName: 'ResourceExhausted' });
  });

  test('a response that is too large leaves the outcome unknown, also if the text of the error has a secret', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'x'.repeat(5 * 1024 * 1024) } });
    const secrets = { size: SecretString.fromText(String(4 * 1024 * 1024)) };
    await assert.rejects(rig.calls.createVolume({ name: 'v', secrets }), (error: unknown) => {
      assert.ok(error instanceof LostStatusError);
      assert.match(error.details, /vs \*\*\*stripped\*\*\*/);
      return true;
    });
  });

  test('secrets reach the driver and no log line', async () => {
    const lines: LogLine[] = [];
    await using rig = await Rig.start({ logger: recordedLogger(lines) });
    await rig.calls.deleteVolume({ volume_id: 'v', secrets: { user: SecretString.fromText('hunter2') } });
    assert.deepEqual(rig.driver.callsOf('DeleteVolume')[0]?.request, { volume_id: 'v', secrets: { user: 'hunter2' } });
    assert.ok(!JSON.stringify(lines).includes('hunter2'));
    const line = lines.find(({ fields }) => 'request' in fields && JSON.stringify(fields).includes('DeleteVolume'));
    assert.deepEqual(JSON.parse(JSON.stringify(line)), {
      level: 'trace',
      fields: { method: '/csi.v1.Controller/DeleteVolume', request: { volume_id: 'v', secrets: '***stripped***' } },
      message: 'GRPC call',
    });
  });

  test('a secret that is not UTF-8 fails before anything is sent', async () => {
    await using rig = await Rig.start();
    const secrets = { key: SecretString.fromBytes(Uint8Array.of(0xff, 0xfe)) };
    await assert.rejects(rig.calls.deleteVolume({ volume_id: 'v', secrets }), {
      message: 'rpc error: code = Internal desc = grpc: error while marshaling: string field contains invalid UTF-8',
    });
    assert.deepEqual(rig.driver.calls, []);
    assert.equal(rig.finishedCalls[0]?.code, 'Internal');
  });

  const ends: { title: string; answer: Answer; told: string[] }[] = [
    { title: 'a success', answer: { volume: { volume_id: 'v' } }, told: ['responded'] },
    {
      title: "the driver's own deadline",
      answer: new DriverFailure(status.DEADLINE_EXCEEDED, 'x'),
      told: ['responded'],
    },
    { title: 'any other failure of the driver', answer: new DriverFailure(status.INTERNAL, 'x'), told: ['responded'] },
  ];
  for (const { title, answer, told } of ends) {
    test(`${title} of a CreateVolume counts as a response`, async () => {
      await using rig = await Rig.start();
      const seen: string[] = [];
      const calls = callsWith(rig, seen, 500);
      rig.driver.next('CreateVolume', answer);
      await calls.createVolume({ name: 'v' }).catch(() => undefined);
      assert.deepEqual(seen, told);
    });
  }

  test('a CreateVolume without a response is given up at our deadline, and when we cancel it', async () => {
    await using server = await RawGrpcServer.start(() => undefined); // grpc-js would respond at the deadline
    await using connection = await connected(server.socketPath);
    const seen: string[] = [];
    const calls = callsWith({ connection }, seen, 300);
    await assert.rejects(calls.createVolume({ name: 'v' }), { code: status.DEADLINE_EXCEEDED });
    assert.deepEqual(seen, ['given up']);
    const signal = AbortSignal.timeout(20);
    await assert.rejects(calls.createVolume({ name: 'v' }, { signal }), { code: status.CANCELLED });
    assert.deepEqual(seen, ['given up', 'given up']);
    await assert.rejects(calls.deleteVolume({ volume_id: 'v' }), { code: status.DEADLINE_EXCEEDED });
    assert.deepEqual(seen, ['given up', 'given up'], 'it creates nothing');
  });

  test('a CreateVolume whose driver dies is not given up: what it has not read is lost', async () => {
    await using rig = await Rig.start();
    const seen: string[] = [];
    rig.driver.next('CreateVolume', hang);
    const created = callsWith(rig, seen, 10_000).createVolume({ name: 'v' });
    await rig.driver.called('CreateVolume');
    rig.driver.kill();
    await assert.rejects(created, { code: status.UNAVAILABLE });
    assert.deepEqual(seen, []);
  });
});

/** Calls whose progress is noted. */
function callsWith({ connection }: Pick<Rig, 'connection'>, seen: string[], timeoutMs: number): CsiCalls {
  const progress = { responded: () => void seen.push('responded'), givenUp: () => void seen.push('given up') };
  return csiCalls(csi, { connection, timeoutMs, logger: recordedLogger([]), clock: systemClock, progress });
}

async function connected(socketPath: string): Promise<CsiConnection> {
  const connection = new CsiConnection({ address: socketPath, clock: systemClock, logger: recordedLogger([]) });
  await connection.connect();
  return connection;
}
