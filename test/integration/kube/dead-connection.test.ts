/** Watches over HTTP/2 through a balancer, whose server may die without a word. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { CertificateAuthority } from '../../../sandbox/api/certificates.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { TransportError } from '../../../src/kube/client/api-error.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import { Informer } from '../../../src/kube/cache/informer.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { writeKubeconfig } from '../../support/control-plane/kubeconfig.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { startBalancer } from '../../support/tcp-balancer.ts';
import { configMap, configMaps, listOf } from './rig.ts';

interface Seen {
  path: string;
  isWatch: boolean;
  protocol: string;
  port: number;
}

/** A server of HTTP/2 and HTTP/1.1 with one config map and silent watches, behind a balancer, and perhaps a proxy before that. */
async function open({ proxied = false } = {}) {
  await using opened = new AsyncDisposableStack();
  const clock = new ManualClock();
  const ca = new CertificateAuthority({ nowMs: Date.now() });
  const requests: Seen[] = [];
  const sessions: ServerHttp2Session[] = [];
  const server = createSecureServer(
    { ...ca.server(), allowHTTP1: true },
    (request: Http2ServerRequest, response: Http2ServerResponse) => {
      const url = new URL(request.url, 'https://server');
      const isWatch = url.searchParams.has('watch');
      const port = request.socket.remotePort ?? 0;
      requests.push({ path: url.pathname, isWatch, protocol: request.httpVersion, port });
      response.writeHead(200, { 'content-type': 'application/json' });
      if (isWatch) response.write('\n');
      else response.end(JSON.stringify(listOf([configMap('a', 1)], 10)));
    },
  );
  server.on('session', (session) => sessions.push(session));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.defer(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const balancer = opened.use(await startBalancer([(server.address() as AddressInfo).port]));
  const folder = await mkdtemp(join(tmpdir(), 'dead-connection-'));
  opened.defer(() => rm(folder, { recursive: true }));
  const kubeconfig = join(folder, 'kubeconfig');
  const proxyUrl = proxied ? opened.use(await startConnectProxy()).url : undefined;
  const url = `https://127.0.0.1:${balancer.port}`;
  await writeKubeconfig(kubeconfig, { url, ca: ca.cert, token: 'token', proxyUrl });
  const transport = opened.use(connect({ kubeconfig, environment: {}, clock, logger: silentLogger }));
  const client = new KubeClient({ transport, fieldManager: 'test' });
  const stop = new AbortController();
  const informer = new Informer({ transport, resource: configMaps, clock, logger: silentLogger, watchList: 'off' });
  const running = informer.run(stop.signal);
  opened.defer(async () => {
    stop.abort(new Error('the test is over'));
    await running;
  });
  const watches = (): Seen[] => requests.filter(({ isWatch }) => isWatch);
  await clock.until(() => watches().length === 1);
  const stack = opened.move();
  return { clock, client, balancer, requests, sessions, watches, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('a watch over HTTP/2', () => {
  test('shares one connection with the lists', async () => {
    await using rig = await open();
    assert.deepEqual(
      rig.requests.map(({ protocol }) => protocol),
      ['2.0', '2.0'],
    );
    assert.deepEqual(rig.balancer.accepted, [1]);
  });

  test('is opened again within 35 s, without a list, when the server behind a balancer dies without a word', async () => {
    await using rig = await open();
    rig.balancer.silenceConnections();
    const waitedMs = await rig.clock.until(() => rig.watches().length === 2, { withinMs: 35_000 });
    assert.ok(waitedMs >= 25_000, `${waitedMs} ms`);
    assert.equal(rig.requests.filter(({ isWatch }) => !isWatch).length, 1);
    assert.notEqual(rig.watches()[0]?.port, rig.watches()[1]?.port);
  });

  test('shares one connection, and is opened again when the server dies, through a proxy, too', async () => {
    await using rig = await open({ proxied: true });
    assert.deepEqual(
      rig.requests.map(({ protocol }) => protocol),
      ['2.0', '2.0'],
    );
    assert.deepEqual(rig.balancer.accepted, [1]);
    await rig.clock.advance(5000); // what came so far has been counted
    const quiet = rig.clock.monotonicMs();
    rig.balancer.silenceConnections();
    await rig.clock.until(() => rig.watches().length === 2, { withinMs: 35_000 });
    assert.ok(rig.clock.monotonicMs() - quiet >= 25_000);
    assert.notEqual(rig.watches()[0]?.port, rig.watches()[1]?.port);
  });

  test('that died has later requests go over new connections, too', async () => {
    await using rig = await open();
    await rig.clock.advance(5000); // what came so far has been counted
    await rig.client.raw('/one');
    await rig.clock.settle(); // its connection is idle then
    rig.balancer.silenceConnections();
    await rig.clock.until(() => rig.watches().length === 2);
    await rig.client.raw('/two');
    const [one, two] = ['/one', '/two'].map((path) => rig.requests.find((each) => each.path === path));
    assert.deepEqual([one?.protocol, two?.protocol], ['1.1', '1.1']);
    assert.notEqual(one?.port, two?.port);
  });

  test('that died has a GET under way over another connection sent again', async () => {
    await using rig = await open();
    await rig.clock.advance(5000); // what came so far has been counted
    await rig.client.raw('/one');
    await rig.clock.settle(); // its connection is idle then
    rig.balancer.silenceConnections();
    const read = rig.client.raw('/two');
    const waitedMs = await rig.clock.until(() => rig.requests.some(({ path }) => path === '/two'));
    await read;
    assert.ok(waitedMs > 0 && waitedMs <= 31_000, `${waitedMs} ms`);
  });

  test('that died ends a write under way over another connection: nobody knows whether it was made', async () => {
    await using rig = await open();
    await rig.clock.advance(5000); // what came so far has been counted
    await rig.client.raw('/one');
    await rig.clock.settle(); // its connection is idle then
    rig.balancer.silenceConnections();
    let error: unknown;
    const patch = { type: 'merge', body: {} } as const;
    rig.client.patch(configMaps, { namespace: 'ns', name: 'a' }, patch).catch((reason: unknown) => (error = reason));
    const waitedMs = await rig.clock.until(() => error !== undefined);
    assert.match(String(error), /not even the response to a PING/);
    assert.ok(error instanceof TransportError && error.sent);
    assert.ok(waitedMs < 30_000, `${waitedMs} ms`);
    assert.equal(rig.requests.filter(({ path }) => path.endsWith('/a')).length, 0);
  });

  for (const proxied of [false, true]) {
    test(`stays open while PING frames come${proxied ? ', through a proxy, too' : ''}`, async () => {
      await using rig = await open({ proxied });
      const [session] = rig.sessions;
      assert.ok(session);
      for (let i = 0; i < 14; i++) {
        await promisify(session.ping.bind(session) as (callback: (error: Error | null) => void) => boolean)();
        await rig.clock.advance(5000);
      }
      assert.equal(rig.watches().length, 1);
    });
  }

  test('survives that the process stood still for an hour', async () => {
    await using rig = await open();
    await rig.clock.jump(20_000);
    await rig.clock.jump(30_000);
    assert.equal(rig.sessions[0]?.destroyed, false);
    assert.equal(rig.watches().length, 1);
  });
});
