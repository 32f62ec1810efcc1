/** Clients of the HTTP endpoint that mean no good, all at once: the liveness path answers, memory stays bounded. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { freePort } from '../../support/free-ports.ts';
import { type SidecarProcess, startSidecar } from './sidecar-process.ts';

const mebi = 1024 * 1024;
/** More than the program ever needs for answers, and far less than a hundred unbounded clients would take. */
const mostGrowthBytes = 200 * mebi;

describe('the HTTP endpoint withstands', () => {
  let sidecar: SidecarProcess;
  let port: number;
  let restBytes: number;
  let sockets: Socket[] = [];

  before(async () => {
    port = await freePort();
    sidecar = await startSidecar({
      flags: [
        '--leader-election',
        '--leader-election-lease-duration=2m', // on a busy machine the floods take longer than the default
        '--leader-election-renew-deadline=90s',
        `--http-endpoint=127.0.0.1:${port}`,
        '--enable-pprof',
      ],
      // As in the image: a heap that gives back what it does not need, and an end to it.
      nodeFlags: ['--max-semi-space-size=4', '--heap-growing-percent=100', '--max-old-space-size=200'],
    });
    await sidecar.logged(/"Started provisioner controller"/);
    await alive();
    restBytes = residentBytes();
  });
  afterEach(async () => {
    await alive();
    const growth = residentBytes() - restBytes;
    assert.ok(growth < mostGrowthBytes, `grew by ${Math.round(growth / mebi)} MiB`);
    for (const socket of sockets) socket.destroy();
    sockets = [];
    await alive();
  });
  after(() => sidecar[Symbol.asyncDispose]());

  function residentBytes(): number {
    const status = readFileSync(`/proc/${sidecar.process.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** A probe as of a kubelet: a new connection, and an answer. */
  async function alive(): Promise<void> {
    const response = await fetch(`http://127.0.0.1:${port}/healthz/leader-election`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(60_000), // on a busy machine; that an answer comes at all is what counts
    }).catch((cause: unknown) => {
      throw new Error(`no response; the end of the log of the sidecar:\n${sidecar.process.log().slice(-2000)}`, {
        cause,
      });
    });
    assert.deepEqual([response.status, await response.text()], [200, 'ok']);
    assert.equal(sidecar.process.running(), true);
  }

  /** That many connections which send this and then do what `then` says; being cut is fine. */
  async function flood(count: number, bytes: string): Promise<Socket[]> {
    const opened = await Promise.all(
      Array.from({ length: count }, async () => {
        const socket = connect({ port, host: '127.0.0.1' });
        socket.on('error', () => undefined);
        sockets.push(socket);
        await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
        socket.write(bytes);
        return socket;
      }),
    );
    return opened;
  }

  test('a hundred clients that never end their headers', async () => {
    await flood(100, 'GET /metrics HTTP/1.1\r\nHost: a\r\nX-Slow: ');
    await alive();
  });

  test('three hundred clients that send nothing at all', async () => {
    await flood(300, '');
    await alive();
  });

  test('a hundred clients that keep their connection and ask no more', async () => {
    await flood(100, 'GET /healthz/leader-election HTTP/1.1\r\nHost: a\r\n\r\n');
    await alive();
  });

  test('thirty clients with a header of a mebibyte', async () => {
    for (const socket of await flood(30, `GET / HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(mebi)}\r\n\r\n`))
      socket.resume();
    await alive();
  });

  test('ten clients that send a body of 16 MiB and announce more', async () => {
    const head = 'POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n';
    for (const socket of await flood(10, head)) {
      socket.resume();
      socket.write(Buffer.alloc(16 * mebi));
    }
    await alive();
  });

  test('sixty clients that ask a thousand times for the metrics and read nothing', async () => {
    const all = await flood(60, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000));
    for (const socket of all) socket.pause();
    await alive();
  });

  test('two hundred scrapes at once, by readers that read', async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 200 }, async (_, n) => {
        const headers = { connection: 'close', 'accept-encoding': n % 2 === 0 ? 'gzip' : 'identity' };
        return (await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text()).length;
      }),
    );
    const served = answers.filter((answer) => answer.status === 'fulfilled' && answer.value > 1000);
    assert.ok(served.length === 200, `${served.length} scrapes were served`);
  });

  test('profiles of both kinds in parallel, most of them abandoned', async () => {
    const path = '/debug/pprof';
    const leaving = new AbortController();
    const asked = Array.from({ length: 60 }, (_, n) =>
      fetch(`http://127.0.0.1:${port}${path}/${n % 2 === 0 ? 'heap' : 'profile?seconds=60'}`, {
        signal: leaving.signal,
      }),
    );
    for (const each of asked) each.catch(() => undefined);
    await alive();
    leaving.abort();
    await Promise.allSettled(asked);
    await flood(20, `GET ${path}/heap HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(200));
    await alive();
    const heap = await fetch(`http://127.0.0.1:${port}${path}/heap`, { signal: AbortSignal.timeout(60_000) });
    assert.equal(heap.status, 200);
    await heap.arrayBuffer();
  });
});
