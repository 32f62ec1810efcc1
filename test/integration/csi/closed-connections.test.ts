/** Connections that the driver closes although it is well, and what looks similar but is a loss. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, unlink } from 'node:fs/promises';
import http2 from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { type ServerOptions, status } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { Driver } from '../../../src/csi/driver.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { DriverFailure, RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { startAnswers } from './encoded-answers.ts';
import { patienceMs } from '../../support/patience.ts';
import { answerWith, RawGrpcServer } from './raw-grpc-server.ts';
import { Scene } from './scene.ts';

const renewed = 'The driver closed the connection, connected again at once';
/** Above the second that a connection has to hold. */
const ageMs = 3000;

describe('a driver that closes its connections', { concurrency: true }, () => {
  const limits: Record<string, ServerOptions> = {
    'at an age': { 'grpc.max_connection_age_ms': ageMs },
    'when idle': { 'grpc.max_connection_idle_ms': ageMs },
  };
  for (const [which, serverOptions] of Object.entries(limits)) {
    test(`${which} is not lost: nothing is logged but for debugging, and nobody is notified`, async (context) => {
      await using rig = await start(context, { serverOptions });
      rig.pass(ageMs);
      await rig.logged(renewed);
      assert.deepEqual(rig.worthReading(), []);
      assert.equal(rig.reconnects(), 0);
      assert.equal(rig.driver.connected, true);
    });
  }

  test('gets each call about volumes, also those that begin while it does', async (context) => {
    await using rig = await start(context);
    let sent = 0;
    for (const times of [1, 2, 3]) {
      rig.retire();
      while (rig.count(renewed) < times) {
        await rig.driver.calls.deleteVolume({ volume_id: 'v' });
        sent += 1;
        assert.equal(rig.driver.connected, true);
      }
    }
    assert.equal(rig.first.callsOf('DeleteVolume').length, sent);
    assert.deepEqual(rig.worthReading(), []);
  });

  test('ends the calls under way as if nothing were', async (context) => {
    await using rig = await start(context);
    const response = Promise.withResolvers<object>();
    rig.first.next('CreateVolume', () => response.promise);
    const created = rig.driver.calls.createVolume({ name: 'v' });
    await rig.first.called('CreateVolume');
    for (const times of [1, 2]) {
      rig.retire();
      await rig.logged(renewed, times);
    }
    response.resolve({ volume: { volume_id: 'late' } });
    assert.equal((await created).volume?.volume_id, 'late');
    assert.deepEqual(rig.worthReading(), []);
  });

  const changes: Record<string, [method: string, response: object]> = {
    version: ['GetPluginInfo', { name: 'd.example.com', vendor_version: '2.0.0' }],
    capabilities: ['ControllerGetCapabilities', { capabilities: [{ rpc: { type: 'GET_CAPACITY' } }] }],
    'plugin capabilities': ['GetPluginCapabilities', { capabilities: [] }],
    node: ['NodeGetInfo', { node_id: 'n1', accessible_topology: { segments: { zone: 'z2' } } }],
  };
  for (const [what, [method, response]] of Object.entries(changes)) {
    test(`is probed, and everybody notified, with a change of its ${what}`, async (context) => {
      await using rig = await start(context);
      rig.first.always(method, response);
      rig.retire();
      await rig.logged('The driver came back');
      assert.equal(rig.first.callsOf('Probe').length, 2);
      assert.equal(rig.reconnects(), 1);
      assert.equal(rig.count('Lost connection'), 0);
      rig.retire();
      await rig.logged(renewed, 2);
      await rig.driver.calls.deleteVolume({ volume_id: 'v' });
      assert.equal(rig.reconnects(), 1, 'only once');
    });
  }

  test('is probed until it responds to the queries again, and gets no call until then', async (context) => {
    await using rig = await start(context);
    rig.first.next('GetPluginInfo', new DriverFailure(status.UNAVAILABLE, 'not now'));
    const probe = Promise.withResolvers<object>();
    rig.first.next('Probe', () => probe.promise);
    rig.retire();
    await rig.first.called('Probe', 2);
    await assert.rejects(rig.driver.calls.deleteVolume({ volume_id: 'v' }), { sent: false });
    probe.resolve({});
    await rig.logged('The driver came back');
    assert.deepEqual(rig.first.callsOf('DeleteVolume'), []);
  });

  test('ends the process when it has another name then', async (context) => {
    await using rig = await start(context);
    rig.first.always('GetPluginInfo', { name: 'other.example.com' });
    rig.retire();
    await rig.until(() => rig.gone.length > 0);
    assert.match(rig.gone[0] ?? '', /changed its name from d\.example\.com to other\.example\.com/);
  });

  test('is not asked again for a claim that it called infeasible', async () => {
    let passedMs = 0;
    await using scene = await Scene.start({
      clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs },
      flags: ['-v=5', '--retry-interval-start=1h', '--retry-interval-max=1h'],
      script: (driver) => driver.always('CreateVolume', new DriverFailure(status.INVALID_ARGUMENT, 'no such pool')),
    });
    scene.addClaim();
    await scene.event('ProvisioningFailed');
    for (const times of [1, 2]) {
      passedMs += ageMs;
      scene.driver.retireConnections();
      await scene.until('the next connection', () => renewals(scene) >= times);
    }
    scene.addClaim('c2');
    await scene.until('the call for another claim', () => scene.driver.callsOf('CreateVolume').length >= 2);
    const names = scene.driver.callsOf('CreateVolume').map(({ request }) => request['name']);
    assert.equal(new Set(names).size, names.length);
  });
});

describe('a call that the driver refuses to begin (REFUSED_STREAM)', () => {
  const refusing = async (times: number): Promise<RawGrpcServer> => {
    let left = times;
    return await RawGrpcServer.start((call) => {
      if (call.method !== 'DeleteVolume' || left === 0) answerWith(call, startAnswers[call.method] ?? Buffer.alloc(0));
      else call.stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
      if (call.method === 'DeleteVolume' && left > 0) left -= 1;
    });
  };

  test('is sent once more', async (context) => {
    await using raw = await refusing(1);
    await using rig = await connected(context, raw.socketPath);
    await rig.driver.calls.deleteVolume({ volume_id: 'v' });
    assert.equal(raw.callsOf('DeleteVolume').length, 2);
  });

  test('was not sent if it is refused again', async (context) => {
    await using raw = await refusing(2);
    await using rig = await connected(context, raw.socketPath);
    await assert.rejects(rig.driver.calls.deleteVolume({ volume_id: 'v' }), { codeName: 'Unavailable', sent: false });
    assert.equal(raw.callsOf('DeleteVolume').length, 2);
  });

  test('differs from one that ends with the same text', async (context) => {
    await using rig = await start(context);
    rig.first.next('DeleteVolume', new DriverFailure(status.UNAVAILABLE, 'Stream refused by server'));
    await assert.rejects(rig.driver.calls.deleteVolume({ volume_id: 'v' }), { codeName: 'Unavailable', sent: true });
    assert.equal(rig.first.callsOf('DeleteVolume').length, 1);
  });
});

describe('a connection that ends', { concurrency: true }, () => {
  test('without a word, on a socket that still responds, is no loss where no call was under way', async (context) => {
    await using rig = await start(context, { relayed: true });
    rig.pass(ageMs);
    rig.cut();
    await rig.logged(renewed);
    assert.deepEqual(rig.worthReading(), []);
  });

  test('with a call under way is a loss', async (context) => {
    await using rig = await start(context, { relayed: true });
    rig.first.next('CreateVolume', () => new Promise<object>(() => undefined));
    const created = rig.driver.calls.createVolume({ name: 'v' });
    await rig.first.called('CreateVolume');
    rig.pass(ageMs);
    rig.cut();
    await assert.rejects(created, { codeName: 'Unavailable', sent: true });
    await rig.logged('Lost connection');
    await rig.logged('The driver came back');
    assert.equal(rig.reconnects(), 1);
  });

  test('as soon as it is made is a loss', async (context) => {
    await using rig = await start(context, { relayed: true });
    rig.cut();
    await rig.logged('Lost connection');
    await rig.logged('The driver came back');
  });

  test('since the driver is restarted is a loss, however orderly that is', async (context) => {
    await using rig = await start(context);
    rig.pass(ageMs);
    rig.first.stop();
    await rig.logged('Lost connection');
    await using _second = await startDriver(rig.socketPath);
    await rig.logged('The driver came back');
    assert.equal(rig.reconnects(), 1);
  });

  test('since another process has taken its place on the socket is a loss', async (context) => {
    await using rig = await start(context);
    await unlink(rig.socketPath);
    await using second = await startDriver(rig.socketPath);
    rig.retire();
    await rig.logged('Lost connection');
    await rig.logged('The driver came back');
    assert.equal(second.callsOf('Probe').length, 1);
    assert.equal(rig.reconnects(), 1);
  });
});

function renewals(scene: Scene): number {
  return scene.program.lines.filter((line) => line.includes(renewed)).length;
}

interface Connected extends AsyncDisposable {
  driver: Driver;
  gone: string[];
  /** How often listeners were called. */
  reconnects(): number;
  count(message: string): number;
  /** Messages above debug since the driver is connected. */
  worthReading(): string[];
  logged(message: string, times?: number): Promise<void>;
  until(holds: () => boolean): Promise<void>;
  /** Lets time pass, for what measures it. */
  pass(ms: number): void;
}

interface Rig extends Connected {
  first: RecordingDriver;
  socketPath: string;
  /** The first driver closes its connections, which have held. */
  retire(): void;
  /** Breaks the connections between driver and relay; both still listen. */
  cut(): void;
}

async function start(
  context: TestContext,
  { serverOptions = {}, relayed = false }: { serverOptions?: ServerOptions; relayed?: boolean } = {},
): Promise<Rig> {
  const folder = await mkdtemp(join(tmpdir(), 'csi-driver-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const socketPath = join(folder, 'csi.sock');
  const first = await startDriver(socketPath, serverOptions);
  context.after(() => first.kill());
  const relayPath = join(folder, 'relay.sock');
  const cut = relayed ? await startRelay(context, { from: relayPath, to: socketPath }) : undefined;
  const rig = await connected(context, relayed ? relayPath : socketPath, { askNodeInfo: true });
  const retire = (): void => {
    rig.pass(ageMs);
    first.retireConnections();
  };
  return { ...rig, first, socketPath, retire, cut: () => cut?.() };
}

async function connected(
  context: TestContext,
  address: string,
  { askNodeInfo = false }: { askNodeInfo?: boolean } = {},
): Promise<Connected> {
  const lines: LogLine[] = [];
  const gone: string[] = [];
  const stop = new AbortController();
  // a busy machine cannot make a connection older, or its replacement late
  let nowMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => nowMs, after: () => ({ cancel: () => undefined }) };
  const driver = await Driver.connect({
    address,
    timeoutMs: patienceMs,
    askNodeInfo,
    clock,
    logger: recordedLogger(lines),
    onGone: ({ message }) => void gone.push(message),
    signal: stop.signal,
  });
  const connectedAt = lines.length;
  let reconnects = 0;
  driver.onReconnected(() => (reconnects += 1));
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await systemClock.sleep(5, { signal: context.signal });
  };
  const count = (message: string): number => lines.filter((line) => line.message === message).length;
  return {
    driver,
    gone,
    reconnects: () => reconnects,
    count,
    worthReading: () =>
      lines
        .slice(connectedAt)
        .filter(({ level }) => level !== 'debug' && level !== 'trace')
        .map(({ message }) => message),
    logged: (message, times = 1) => until(() => count(message) >= times),
    until,
    pass: (ms) => void (nowMs += ms),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await driver[Symbol.asyncDispose]();
    },
  };
}

async function startDriver(socketPath: string, serverOptions: ServerOptions = {}): Promise<RecordingDriver> {
  const driver = await RecordingDriver.start({ socketPath, serverOptions });
  driver.always('NodeGetInfo', { node_id: 'n1', accessible_topology: { segments: { zone: 'z1' } } });
  return driver;
}

/** @returns a function that breaks all present connections. */
async function startRelay(context: TestContext, { from, to }: { from: string; to: string }): Promise<() => void> {
  const sockets = new Set<Socket>();
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  const server = createServer((near) => {
    const far = connect(to);
    for (const socket of [near, far]) sockets.add(socket.on('error', () => undefined));
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(from, resolve));
  context.after(() => {
    cut();
    server.close();
  });
  return cut;
}
