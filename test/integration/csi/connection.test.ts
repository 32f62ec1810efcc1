import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { ConnectTimeoutError, CsiConnection } from '../../../src/csi/connection.ts';
import { csiTarget } from '../../../src/csi/csi-address.ts';
import { csiCalls } from '../../../src/csi/csi-calls.ts';
import { recordedLogger, type LogLine } from '../../support/fakes/recorded-logger.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { csi } from '../../support/csi-rig.ts';

async function socketFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'csi-connection-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe('csiTarget', () => {
  const foreign = (address: string): string =>
    'OnConnectionLoss callback only supported for unix:// addresses: ' +
    `--csi-address must be an absolute path, or unix:// with one, not "${address}"`;
  const authority = (name: string, address: string): string =>
    `failed to exit idle mode: failed to start resolver: invalid (non-empty) authority: ${name}: ` +
    `--csi-address must be an absolute path, or unix:// with one, not "${address}"`;
  const noSocket =
    'unix:// names no socket: --csi-address must be an absolute path, or unix:// with one, not "unix://"';
  const accepted = [
    { address: '/run/csi/socket', target: 'unix:///run/csi/socket' },
    { address: 'unix:///run/csi/socket', target: 'unix:///run/csi/socket' },
  ];
  for (const { address, target } of accepted) {
    test(`turns ${address} into ${target}`, () => assert.equal(csiTarget(address), target));
  }
  const refused = [
    { address: '', message: foreign('') },
    { address: 'csi.sock', message: foreign('csi.sock') },
    { address: 'unix:/run/csi.sock', message: foreign('unix:/run/csi.sock') },
    { address: 'localhost:9000', message: foreign('localhost:9000') },
    { address: 'tcp://localhost:9000', message: foreign('tcp://localhost:9000') },
    { address: 'dns:///localhost', message: foreign('dns:///localhost') },
    { address: 'unix://rel', message: authority('rel', 'unix://rel') },
    { address: 'unix://rel/csi.sock', message: authority('rel', 'unix://rel/csi.sock') },
    { address: 'unix://', message: noSocket },
  ];
  for (const { address, message } of refused) {
    test(`refuses ${JSON.stringify(address)}`, () =>
      assert.throws(() => csiTarget(address), { name: 'CsiAddressError', message }));
  }
});

/** A listener that passes everything on to a driver, until it is cut off as by a kill of the process. */
async function relay(context: TestContext, driverPath: string): Promise<{ socketPath: string; cut: () => void }> {
  const socketPath = join(await socketFolder(context), 'relay.sock');
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(driverPath);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const cut = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  context.after(cut);
  return { socketPath, cut };
}

describe('CsiConnection', () => {
  test('tells at once that it is connecting and gives up after the limit', async (context) => {
    const lines: LogLine[] = [];
    const address = join(await socketFolder(context), 'none.sock');
    await using connection = new CsiConnection({ address, logger: recordedLogger(lines), clock: systemClock });
    const waiting = connection.connect({ limitMs: 200 });
    assert.deepEqual(lines[0], { level: 'info', fields: { address: `unix://${address}` }, message: 'Connecting' });
    await assert.rejects(waiting, new ConnectTimeoutError());
    assert.equal(connection.state, 'new');
  });

  test('without a limit waits until the driver listens, and says meanwhile why it does not', async (context) => {
    const socketPath = join(await socketFolder(context), 'csi.sock');
    const lines: LogLine[] = [];
    const seen = Promise.withResolvers<undefined>();
    const logger = recordedLogger(lines);
    const notice = {
      ...logger,
      info: (fields: object, message: string) => {
        logger.info(fields, message);
        if (message === 'Still connecting') seen.resolve(undefined);
      },
    };
    await using connection = new CsiConnection({ address: socketPath, logger: notice, clock: systemClock });
    const connected = connection.connect({ limitMs: Infinity, noticeIntervalMs: 10 });
    await seen.promise;
    const { fields } = lines.find(({ message }) => message === 'Still connecting') ?? {};
    assert.match((fields as { err?: string }).err ?? '', /^ENOENT: there is no \/.*csi\.sock: .*--csi-address/);
    await using driver = await RecordingDriver.start({ socketPath });
    await connected;
    assert.equal(connection.state, 'ready');
    assert.deepEqual(driver.calls, []);
  });

  test('ends the wait when its signal aborts', async (context) => {
    const address = join(await socketFolder(context), 'none.sock');
    await using connection = new CsiConnection({ address, logger: silentLogger, clock: systemClock });
    const stop = new AbortController();
    const waiting = connection.connect({ limitMs: Infinity, signal: stop.signal });
    stop.abort(new Error('stopping'));
    await assert.rejects(waiting, { message: 'stopping' });
  });

  test('notices a lost driver without any call and connects again when it is back', async (context) => {
    const socketPath = join(await socketFolder(context), 'csi.sock');
    const first = await RecordingDriver.start({ socketPath });
    const lost = Promise.withResolvers<undefined>();
    const back = Promise.withResolvers<undefined>();
    await using connection = new CsiConnection({
      address: socketPath,
      logger: silentLogger,
      clock: systemClock,
      onLost: () => lost.resolve(undefined),
      onReconnected: () => back.resolve(undefined),
    });
    await connection.connect();
    first.kill();
    await lost.promise;
    assert.equal(connection.state, 'lost');
    await using second = await RecordingDriver.start({ socketPath });
    await back.promise;
    assert.equal(connection.state, 'ready');
    const calls = csiCalls(csi, { connection, timeoutMs: 5000, logger: silentLogger, clock: systemClock });
    await calls.probe();
    assert.equal(second.callsOf('Probe').length, 1);
  });

  test('a call while the driver is away fails with Unavailable', async (context) => {
    const socketPath = join(await socketFolder(context), 'csi.sock');
    const driver = await RecordingDriver.start({ socketPath });
    const lost = Promise.withResolvers<undefined>();
    await using connection = new CsiConnection({
      address: socketPath,
      logger: silentLogger,
      clock: systemClock,
      onLost: () => lost.resolve(undefined),
    });
    await connection.connect();
    driver.kill();
    await lost.promise;
    const calls = csiCalls(csi, { connection, timeoutMs: 5000, logger: silentLogger, clock: systemClock });
    await assert.rejects(calls.probe(), { name: 'CsiCallError', codeName: 'Unavailable' });
  });

  test('a call right after a loss waits for the next attempt to connect', async (context) => {
    const socketPath = join(await socketFolder(context), 'csi.sock');
    const first = await RecordingDriver.start({ socketPath });
    const lost = Promise.withResolvers<undefined>();
    await using connection = new CsiConnection({
      address: socketPath,
      logger: silentLogger,
      clock: systemClock,
      onLost: () => lost.resolve(undefined),
    });
    await connection.connect();
    first.kill();
    await using second = await RecordingDriver.start({ socketPath });
    await lost.promise;
    const calls = csiCalls(csi, { connection, timeoutMs: 5000, logger: silentLogger, clock: systemClock });
    await calls.probe();
    assert.equal(second.callsOf('Probe').length, 1);
  });

  test('a call in flight when the socket breaks fails with Unavailable', async (context) => {
    await using driver = await RecordingDriver.start();
    driver.next('Probe', () => new Promise<object>(() => undefined));
    const { socketPath, cut } = await relay(context, driver.socketPath);
    await using connection = new CsiConnection({ address: socketPath, logger: silentLogger, clock: systemClock });
    await connection.connect();
    const calls = csiCalls(csi, { connection, timeoutMs: 5000, logger: silentLogger, clock: systemClock });
    const answer = calls.probe();
    await driver.called('Probe');
    cut();
    await assert.rejects(answer, { message: 'rpc error: code = Unavailable desc = error reading from server: EOF' });
  });

  test('is closed for good after disposal, and disposal may be repeated', async () => {
    await using driver = await RecordingDriver.start();
    let losses = 0;
    const connection = new CsiConnection({
      address: driver.socketPath,
      logger: silentLogger,
      clock: systemClock,
      onLost: () => (losses += 1),
    });
    await connection.connect();
    await connection[Symbol.asyncDispose]();
    await connection[Symbol.asyncDispose]();
    assert.equal(connection.state, 'closed');
    assert.equal(losses, 0);
  });
});
