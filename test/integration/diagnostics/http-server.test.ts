import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { silentLogger, type Logger } from '../../../src/base/logger.ts';
import {
  type DiagnosticsServer,
  type DiagnosticsServerOptions,
  healthHandler,
  sendText,
  startDiagnosticsServer,
} from '../../../src/diagnostics/http-server.ts';

async function start(options: Partial<DiagnosticsServerOptions> = {}): Promise<DiagnosticsServer> {
  return await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger, ...options });
}

async function get(server: DiagnosticsServer, path: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(`http://127.0.0.1:${server.port}${path}`, init);
}

/** Sends raw bytes and returns all that comes back until the server ends the connection. */
async function exchange(server: DiagnosticsServer, bytes: string | Buffer): Promise<string> {
  const socket = await open(server);
  socket.write(bytes);
  return await ending(socket);
}

async function open(server: { port: number }): Promise<Socket> {
  const socket = connect({ port: server.port, host: '127.0.0.1' });
  await once(socket, 'connect');
  return socket;
}

async function ending(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => (text += part));
  socket.on('error', () => undefined); // a reset is an end too
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

describe('paths', () => {
  test('an exact path is served for every method', async () => {
    await using server = await start();
    server.handle('/x', (received, response) => sendText(response, 200, received.method ?? ''));
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await get(server, '/x', { method });
      assert.equal(response.status, 200);
      assert.equal(await response.text(), method);
    }
    assert.equal((await get(server, '/x', { method: 'HEAD' })).status, 200);
  });

  test('the query does not count, escapes do', async () => {
    await using server = await start();
    server.handle('/x', (_received, response) => sendText(response, 200, 'ok'));
    assert.equal((await get(server, '/x?y=/z')).status, 200);
    assert.equal((await get(server, '/%78')).status, 200);
    assert.equal((await get(server, '/%zz')).status, 404);
  });

  test('anything else is 404, with the text and headers of Go', async () => {
    await using server = await start();
    server.handle('/x', (_received, response) => sendText(response, 200, 'ok'));
    for (const path of ['/', '/x/', '/X', '/x/y']) {
      const response = await get(server, path);
      assert.equal(response.status, 404);
      assert.equal(await response.text(), '404 page not found\n');
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
      assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
      assert.equal(response.headers.get('content-length'), '19');
    }
  });

  test('a path with a host is for that host only, whatever the port', async () => {
    await using server = await start();
    server.handle('a/b', (_received, response) => sendText(response, 200, 'ok'));
    const statusFor = async (host: string): Promise<string> =>
      (await exchange(server, `GET /b HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).slice(9, 12);
    assert.equal(await statusFor('a'), '200');
    assert.equal(await statusFor('a:8080'), '200');
    assert.equal(await statusFor('b'), '404');
  });

  test('an absolute request target is understood', async () => {
    await using server = await start();
    server.handle('/x', (_received, response) => sendText(response, 200, 'ok'));
    const answer = await exchange(server, 'GET http://a/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });

  test('paths may be added later', async () => {
    await using server = await start();
    assert.equal((await get(server, '/late')).status, 404);
    server.handle('/late', (_received, response) => sendText(response, 200, 'ok'));
    assert.equal((await get(server, '/late')).status, 200);
  });

  test('a handler that fails answers 500 without its reason, and logs that', async () => {
    const errors: object[] = [];
    const logger: Logger = { ...silentLogger, error: (fields) => void errors.push(fields) };
    await using server = await start({ logger });
    server.handle('/x', () => Promise.reject(new Error('inner')));
    const response = await get(server, '/x');
    assert.equal(response.status, 500);
    assert.equal(await response.text(), 'internal server error\n');
    assert.match(JSON.stringify(errors.map((fields) => String((fields as { err: unknown }).err))), /inner/);
  });
});

describe('health', () => {
  test('ok without a line break, or the problem', async () => {
    await using server = await start();
    const state: { problem?: string } = {};
    server.handle(
      '/healthz/leader-election',
      healthHandler(() => state.problem),
    );
    const well = await get(server, '/healthz/leader-election', { method: 'POST' });
    assert.equal(well.status, 200);
    assert.equal(well.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(await well.text(), 'ok');
    state.problem = 'failed election to renew leadership on lease ';
    const ill = await get(server, '/healthz/leader-election');
    assert.equal(ill.status, 500);
    assert.equal(await ill.text(), 'internal server error: failed election to renew leadership on lease \n');
  });
});

describe('hostile clients', () => {
  test('a request that never ends its headers is aborted', async () => {
    await using server = await start({ requestTimeoutMs: 100 });
    assert.match(await exchange(server, 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: '), /^HTTP\/1\.1 408 /);
  });

  test('huge headers are refused', async () => {
    await using server = await start();
    const answer = await exchange(server, `GET / HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(20_000)}\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 431 /);
  });

  test('a body is not waited for: the answer comes at once and ends the connection', async () => {
    await using server = await start();
    server.handle('/x', (_received, response) => sendText(response, 200, 'ok'));
    const answer = await exchange(server, 'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\nabc');
    assert.match(answer, /^HTTP\/1\.1 200 [^]*connection: close[^]*\r\n\r\nok$/i);
  });

  test('a chunked body is not waited for: the answer ends the connection', async () => {
    await using server = await start();
    const answer = await exchange(server, 'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
    assert.match(answer, /^HTTP\/1\.1 404 [^]*connection: close/i);
  });

  test('nobody is asked to go on with a body', async () => {
    await using server = await start();
    const answer = await exchange(
      server,
      'PUT /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n',
    );
    assert.match(answer, /^HTTP\/1\.1 404 /);
  });

  test('what is no HTTP is refused', async () => {
    await using server = await start();
    assert.match(await exchange(server, 'hello\r\n\r\n'), /^HTTP\/1\.1 400 /);
  });

  test('a reader that stops reading is disconnected', async () => {
    await using server = await start({ idleTimeoutMs: 200 });
    const done = Promise.withResolvers<boolean>();
    server.handle('/large', (_received, response) => {
      response.once('close', () => done.resolve(response.writableFinished));
      response.end(Buffer.alloc(64 * 1024 * 1024));
    });
    const socket = await open(server);
    socket.pause();
    socket.write('GET /large HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal(await done.promise, false);
    socket.destroy();
  });

  test('there are only so many connections: a new one is let in, in the place of one that asks nothing', async () => {
    await using server = await start();
    server.handle('/x', (_received, response) => sendText(response, 200, 'ok'));
    const sockets = await Promise.all(Array.from({ length: 256 }, async () => await open(server)));
    const ends = sockets.map(async (socket) => await ending(socket));
    for (let n = 0; n < 3; n++) {
      const answer = await exchange(server, 'GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      assert.match(answer, /^HTTP\/1\.1 200 /);
    }
    assert.equal(await ends[0], '', 'the oldest had to go');
    assert.equal(sockets.filter(({ closed }) => closed).length, 1, 'and no other');
    for (const socket of sockets) socket.destroy();
  });

  test('a connection on which something is under way is not given up for a new one', async () => {
    await using server = await start();
    const called = Promise.withResolvers<undefined>();
    const go = Promise.withResolvers<undefined>();
    server.handle('/slow', async (_received, response) => {
      called.resolve(undefined);
      await go.promise;
      sendText(response, 200, 'slow');
    });
    const slow = exchange(server, 'GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await called.promise;
    const sockets = await Promise.all(Array.from({ length: 270 }, async () => await open(server)));
    for (const socket of sockets) socket.on('error', () => undefined);
    go.resolve(undefined);
    assert.match(await slow, /slow$/);
    for (const socket of sockets) socket.destroy();
  });

  test('where two paths match the more precise one is meant, whichever came first', async () => {
    await using server = await start();
    for (const path of ['/', '/debug/pprof/', '/healthz/leader-election', '/{any}']) {
      server.handle(path, (_received, response) => sendText(response, 200, path));
    }
    const served = async (path: string): Promise<string> => (await get(server, path)).text();
    assert.equal(await served('/healthz/leader-election'), '/healthz/leader-election');
    assert.equal(await served('/debug/pprof/heap'), '/debug/pprof/');
    assert.equal(await served('/x'), '/{any}');
    assert.equal(await served('/x/y'), '/');
  });
});

describe('listening', () => {
  test('a taken port is an error as in Go', async () => {
    await using server = await start();
    const address = `127.0.0.1:${server.port}`;
    await assert.rejects(start({ address }), {
      name: 'ListenAddressError',
      message: `listen tcp ${address}: bind: address already in use`,
    });
  });

  test('an unreadable address is an error as in Go', async () => {
    await assert.rejects(start({ address: 'foo' }), { message: 'listen tcp: address foo: missing port in address' });
  });

  test('without a host every interface is listened on', async () => {
    await using server = await start({ address: ':0' });
    assert.equal((await get(server, '/')).status, 404);
  });
});

describe('closing', () => {
  test('ends idle connections at once and those in flight after a moment', async () => {
    const server = await start();
    const { port } = server;
    const called = Promise.withResolvers<undefined>();
    server.handle('/never', () => called.resolve(undefined));
    const idle = await open(server);
    const waiting = request({ port, host: '127.0.0.1', path: '/never' }).end();
    const cut = once(waiting, 'error');
    await called.promise;
    await Promise.all([server[Symbol.asyncDispose](), server[Symbol.asyncDispose]()]);
    await cut;
    await ending(idle);
    await assert.rejects(open({ port }), { code: 'ECONNREFUSED' });
  });

  test('lets a request in flight end well if it is quick', async () => {
    const server = await start();
    const called = Promise.withResolvers<undefined>();
    const go = Promise.withResolvers<undefined>();
    server.handle('/x', async (_received, response) => {
      called.resolve(undefined);
      await go.promise;
      sendText(response, 200, 'ok');
    });
    const answer = get(server, '/x');
    await called.promise;
    const closed = server[Symbol.asyncDispose]();
    go.resolve(undefined);
    assert.equal(await (await answer).text(), 'ok');
    await closed;
  });
});
