import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { startDiagnosticsServer, type DiagnosticsServer } from '../../../src/diagnostics/http-server.ts';
import { startProfiles } from '../../../src/diagnostics/profiles.ts';

async function get(server: DiagnosticsServer, path: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(`http://127.0.0.1:${server.port}/debug/pprof/${path}`, init);
}

describe('profiles', () => {
  test('the index is a page that names all', async () => {
    await using server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
    await using profiles = await startProfiles();
    profiles.serveOn(server);
    const response = await get(server, '');
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(await response.text(), /href="profile\?seconds=30"[^]*href="heap"/);
    for (const name of ['trace', 'heapsnapshot']) assert.equal((await get(server, name)).status, 404);
  });

  test('are served under the names by which profilers reach them', async () => {
    await using server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
    await using profiles = await startProfiles();
    profiles.serveOn(server);
    for (const name of ['', 'profile?seconds=0.01', 'heap']) {
      for (const host of ['10.1.2.3:8080', 'sidecar.monitoring.svc', 'profiles.example.com']) {
        const { port } = server;
        const asked = request({ port, host: '127.0.0.1', path: `/debug/pprof/${name}`, headers: { host } }).end();
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        assert.equal(response.statusCode, 200, `${host}/${name}`);
        await response.toArray();
      }
    }
  });

  test('a CPU profile has nodes and samples, one at a time', async () => {
    await using server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
    await using profiles = await startProfiles();
    profiles.serveOn(server);
    const [first, second] = await Promise.all([get(server, 'profile?seconds=0.3'), get(server, 'profile?seconds=0.3')]);
    assert.deepEqual([first.status, second.status].toSorted(), [200, 503]);
    const profile = (await (first.status === 200 ? first : second).json()) as { nodes: unknown[]; endTime: number };
    assert.ok(profile.nodes.length > 0 && profile.endTime > 0);
    assert.equal((await get(server, 'profile?seconds=0.01')).status, 200, 'and another one afterwards');
  });

  test('a reader that leaves ends its profile', async () => {
    await using server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
    await using profiles = await startProfiles();
    profiles.serveOn(server);
    const leaving = new AbortController();
    const abandoned = get(server, 'profile?seconds=300', { signal: leaving.signal });
    while ((await get(server, 'profile?seconds=0.001')).status !== 503); // until it runs
    leaving.abort();
    await assert.rejects(abandoned, { name: 'AbortError' });
    while ((await get(server, 'profile?seconds=0.001')).status !== 200); // until it has ended
  });

  for (const seconds of ['0', '-1', 'x', '301', 'Infinity']) {
    test(`seconds=${seconds} is refused`, async () => {
      await using server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
      await using profiles = await startProfiles();
      profiles.serveOn(server);
      assert.equal((await get(server, `profile?seconds=${seconds}`)).status, 400);
    });
  }

  test('the heap profile tells where, not what', async () => {
    await using server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
    await using profiles = await startProfiles();
    profiles.serveOn(server);
    const kept = Array.from({ length: 50_000 }, (_, n) => ({ text: `hunter2-${n}` }));
    const text = await (await get(server, 'heap')).text();
    assert.ok('head' in (JSON.parse(text) as object));
    assert.doesNotMatch(text, /hunter2/);
    assert.equal(kept.length, 50_000);
  });
});
