/** Texts of a driver's failures, over a socket without any gRPC library at the driver's end. */
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import net from 'node:net';
import { describe, test } from 'node:test';
import { Client, credentials } from '@grpc/grpc-js';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { CsiConnection } from '../../../src/csi/connection.ts';
import { type CsiCalls, csiCalls } from '../../../src/csi/csi-calls.ts';
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import { eventually } from '../../support/eventually.ts';
import { createdVolume, startAnswers } from './encoded-answers.ts';
import { answerWith, type RawCall, type RawHandler, RawGrpcServer } from './raw-grpc-server.ts';
import { Scene } from './scene.ts';

const invalidArgument = '3';
const tooLong = /^rpc error: code = Internal desc = the driver's status did not arrive.*64 KiB/;

const behave: RawHandler = (call) => answerWith(call, startAnswers[call.method] ?? Buffer.alloc(0));

/** Ends a call with a status alone, as most drivers do. */
function failWith({ stream }: RawCall, text: string): void {
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': invalidArgument, 'grpc-message': text },
    { endStream: true },
  );
}

/** A driver that fails by this handler, and calls to it; both ends know the other's limits. */
async function connected(handler: RawHandler): Promise<AsyncDisposable & { raw: RawGrpcServer; calls: CsiCalls }> {
  await using opened = new AsyncDisposableStack();
  let handle = behave;
  const raw = opened.use(await RawGrpcServer.start((call) => handle(call)));
  const connection = opened.use(
    new CsiConnection({ address: raw.socketPath, logger: silentLogger, clock: systemClock }),
  );
  await connection.connect();
  const calls = csiCalls(loadCsi(), { connection, timeoutMs: 10_000, logger: silentLogger, clock: systemClock });
  await calls.probe();
  handle = handler;
  const held = opened.move();
  return { raw, calls, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

describe('the text of a failure', () => {
  for (const text of ['Exception calling application: ', ' padded', ' ']) {
    test(`${JSON.stringify(text)} arrives with its blanks`, async () => {
      await using scene = await connected((call) => failWith(call, text));
      await assert.rejects(scene.calls.probe(), { codeName: 'InvalidArgument', details: text });
    });
  }

  for (const { name, sent, text } of [
    { name: '64 KiB', sent: '~'.repeat(65_536), text: '~'.repeat(65_536) },
    { name: '64 KiB in percent-encoding', sent: '%C3%A4'.repeat(10_922), text: 'ä'.repeat(10_922) },
  ]) {
    test(`of ${name} arrives whole`, async () => {
      await using scene = await connected((call) => failWith(call, sent));
      await assert.rejects(scene.calls.probe(), { codeName: 'InvalidArgument', details: text });
    });
  }

  test('has a limit that the driver is told', async () => {
    let told: number | undefined;
    await using scene = await connected((call) => {
      told = call.stream.session?.remoteSettings.maxHeaderListSize;
      behave(call);
    });
    await scene.calls.probe();
    assert.equal(told, 65_536 + 256);
  });
});

describe('a text above 64 KiB', { concurrency: true }, () => {
  const cases: { name: string; handler: RawHandler; survives: boolean }[] = [
    {
      name: 'that the driver does not send, as the limit asks of it',
      handler: ({ stream }) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
      survives: true,
    },
    {
      name: 'that the driver does not send after its headers',
      handler: ({ stream }) => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
        stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      },
      survives: true,
    },
    { name: 'that HTTP/2 compresses', handler: (call) => failWith(call, 'x'.repeat(70_000)), survives: true },
    { name: 'that breaks the connection', handler: (call) => failWith(call, '~'.repeat(200_000)), survives: false },
  ];
  for (const { name, handler, survives } of cases) {
    test(`${name} is a failure that says so`, async () => {
      let fail = true;
      await using scene = await connected((call) => (fail ? handler(call) : behave(call)));
      await assert.rejects(scene.calls.probe(), { name: 'LostStatusError', message: tooLong });
      fail = false;
      await eventually(() => scene.calls.probe());
      assert.equal(scene.raw.connections, survives ? 1 : 2);
    });

    test(`${name} does not end the attempt: the driver may be at work`, async () => {
      let claimGoes = (): void => undefined;
      await using raw = await RawGrpcServer.start((call) => {
        if (call.method !== 'CreateVolume') behave(call);
        else if (raw.callsOf('CreateVolume').length > 1) answerWith(call, createdVolume('vol-1'));
        else {
          claimGoes();
          handler(call);
        }
      });
      await using scene = await Scene.start({ socketPath: raw.socketPath });
      claimGoes = () => scene.removeClaim();
      scene.addClaim();
      assert.match((await scene.event('ProvisioningFailed')).message, tooLong);
      await eventually(() => assert.equal(raw.callsOf('DeleteVolume').length, 1));
      assert.equal(scene.volumeNow(), undefined);
      const [first, second] = raw.callsOf('CreateVolume');
      assert.deepEqual(second?.request, first?.request);
    });
  }
});

describe('other HTTP/2 connections of a process that has a driver', () => {
  async function settingsSeen(
    path: (socketPath: string) => Disposable | AsyncDisposable,
  ): Promise<http2.Settings | undefined> {
    await using driver = await connected(behave);
    await driver.calls.probe();
    let seen: http2.Settings | undefined;
    await using other = await RawGrpcServer.start((call) => {
      seen = call.stream.session?.remoteSettings;
      failWith(call, ' padded ');
    });
    await using _client = path(other.socketPath);
    await eventually(() => assert.notEqual(seen, undefined));
    return seen;
  }

  test('check their headers, and announce no limit: those of Node', async () => {
    const padded = Promise.withResolvers<http2.IncomingHttpHeaders>();
    const seen = await settingsSeen((socketPath) => {
      const session = http2.connect('http://localhost', { createConnection: () => net.connect(socketPath) });
      const stream = session.request({ ':method': 'POST', ':path': '/csi.v1.Identity/Probe' });
      stream.on('response', padded.resolve).end();
      return {
        [Symbol.asyncDispose]: async () => {
          await padded.promise;
          session.destroy();
        },
      };
    });
    assert.notEqual(seen?.maxHeaderListSize, 65_536 + 256);
    assert.notEqual((await padded.promise)['grpc-message'], ' padded ');
  });

  test('announce no limit: those of another gRPC client', async () => {
    const seen = await settingsSeen((socketPath) => {
      const client = new Client(`unix:${socketPath}`, credentials.createInsecure());
      const same = (bytes: Buffer): Buffer => bytes;
      client.makeUnaryRequest('/csi.v1.Identity/Probe', same, same, Buffer.alloc(0), () => undefined);
      return { [Symbol.dispose]: () => client.close() };
    });
    assert.notEqual(seen?.maxHeaderListSize, 65_536 + 256);
  });
});
