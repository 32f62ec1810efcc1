/**
 * A driver that does everything wrong: the program must not crash, and must go on working as soon as the driver behaves.
 * That it does not grow either is tested in `test/slow`.
 */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { encoded } from './encoded-answers.ts';
import { answers, behave, greetings, HostileScene, storageClass, unimplemented } from './hostile-scene.ts';
import { Program } from '../../support/program.ts';
import { answerWith, type RawHandler, RawGrpcServer } from './raw-grpc-server.ts';
import { StoredCluster } from './stored-cluster.ts';

describe('a hostile driver', () => {
  let scene: HostileScene;
  before(async () => {
    scene = await HostileScene.start();
    await scene.calm();
  });
  after(() => scene[Symbol.asyncDispose]());

  for (const { title, answer, told } of answers) {
    test(`answers CreateVolume with ${title}: people are told, and the claim gets its volume later`, async () => {
      scene.createVolume = answer;
      const claim = scene.addClaim();
      await scene.warning(claim, told);
      await scene.calm(claim);
    });
  }

  test('that made a volume of the wrong size is told to delete it', async () => {
    scene.createVolume = (call) =>
      answerWith(call, encoded('CreateVolume', { volume: { volume_id: 'small', capacity_bytes: '1' } }));
    const claim = scene.addClaim();
    const requests = (): string[] => scene.raw.callsOf('DeleteVolume').map(({ request }) => request.toString());
    await scene.until('its DeleteVolume', () => requests().includes('\n\u0005small'));
    await scene.calm(claim);
  });

  test('closes the connection in the middle of a call', async () => {
    let closed = 0;
    scene.createVolume = ({ stream }) => {
      closed += 1;
      stream.session?.socket.destroy();
      scene.raw.cut();
    };
    const claim = scene.addClaim();
    await scene.warning(claim, 'rpc error: code = Unavailable desc = error reading from server: EOF');
    await scene.calm(claim);
    assert.ok(closed >= 1);
  });

  for (const { title, intercept } of greetings) {
    test(`meets new connections with ${title}`, async () => {
      const before = scene.raw.connections;
      scene.raw.intercept = intercept;
      scene.raw.cut();
      // one that is kept waiting in silence is given 20 seconds by the gRPC library
      const expected = title === 'silence' ? 1 : 2;
      await scene.until('new connections', () => scene.raw.connections >= before + expected);
      scene.raw.intercept = () => false;
      if (title === 'silence') scene.raw.cut();
      await scene.calm();
    });
  }

  test('takes connections and drops them after a moment: it is tried again about once a second, no more', async () => {
    scene.others = () => scene.raw.cut();
    const before = scene.raw.connections;
    const start = performance.now();
    scene.raw.cut();
    const connections = 4;
    await scene.until('new connections', () => scene.raw.connections >= before + connections);
    const tookMs = performance.now() - start;
    assert.ok(tookMs > 1500, `${connections} connections within ${tookMs.toFixed()} ms`);
    await scene.calm();
  });

  test('comes back and implements nothing, then announces thousands of capabilities: it is asked until it makes sense', async () => {
    const from = scene.sidecar.log().length;
    scene.others = unimplemented;
    scene.raw.cut();
    await scene.logged('could not be queried', from);
    scene.others = (call) => {
      const capability = { rpc: { type: 'CREATE_DELETE_VOLUME' } };
      if (call.method !== 'ControllerGetCapabilities') behave(call);
      else answerWith(call, encoded(call.method, { capabilities: Array(50_000).fill(capability) as object[] }));
    };
    await scene.logged('The driver came back', from);
    await scene.volume(scene.addClaim());
    await scene.calm();
  });

  test('did not end the program', () => {
    assert.ok(scene.sidecar.running(), scene.sidecar.log());
    assert.doesNotMatch(scene.sidecar.log(), /Unhandled|uncaught|MaxListeners/i);
  });
});

describe('a driver that is hostile from the start', () => {
  /** The program in this process, beside a driver of which nothing is sane yet. */
  const start = async (handler: RawHandler, { intercept = (_: Socket): boolean => false, timeout = '1s' } = {}) => {
    const opened = new AsyncDisposableStack();
    const raw = opened.use(await RawGrpcServer.start(handler));
    raw.intercept = intercept;
    const cluster = opened.use(await StoredCluster.start([storageClass]));
    const flags = [`--timeout=${timeout}`];
    const program = opened.use(new Program({ socketPath: raw.socketPath, apiUrl: cluster.url, flags }));
    return { raw, program, [Symbol.asyncDispose]: () => opened.disposeAsync() };
  };

  for (const { title, intercept } of greetings) {
    test(`meets connections with ${title}: the program waits, and starts once it behaves`, async () => {
      await using scene = await start(behave, { intercept });
      const { promise, resolve } = Promise.withResolvers<undefined>();
      scene.raw.intercept = (socket) => {
        if (scene.raw.connections >= 2) resolve(undefined);
        return intercept(socket);
      };
      if (title !== 'silence') await promise;
      scene.raw.intercept = () => false;
      if (title === 'silence') scene.raw.cut();
      await scene.program.logged('Starting provisioner controller');
    });
  }

  test('implements nothing: the program ends with code 1 and says why', async () => {
    await using scene = await start(unimplemented);
    assert.deepEqual(await scene.program.ended, { code: 1 });
    assert.match(scene.program.lines.at(-1) ?? '', /CSI driver probe failed: rpc error: code = Unimplemented/);
  });

  const withCapabilities = (count: number): RawHandler => {
    const capabilities = Array(count).fill({ rpc: { type: 'CREATE_DELETE_VOLUME' } }) as object[];
    const answer = encoded('ControllerGetCapabilities', { capabilities });
    return (call) => (call.method === 'ControllerGetCapabilities' ? answerWith(call, answer) : behave(call));
  };

  const timeout = '1m'; // a busy machine needs more than a second for so many capabilities

  test('announces a hundred thousand capabilities: the program starts', async () => {
    await using scene = await start(withCapabilities(100_000), { timeout });
    await scene.program.logged('Starting provisioner controller');
  });

  test('announces more capabilities than fit into 4 MiB: the program ends with code 255 and says why', async () => {
    await using scene = await start(withCapabilities(700_000), { timeout });
    assert.deepEqual(await scene.program.ended, { code: 255 });
    assert.match(
      scene.program.lines.at(-1) ?? '',
      /Error getting CSI driver capabilities: rpc error: code = ResourceExhausted/,
    );
  });
});
