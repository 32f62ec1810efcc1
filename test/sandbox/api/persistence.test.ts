import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import { claim, configMap, paths, startApi } from './api-fixture.ts';

async function logPath(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'object-log-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'objects.jsonl');
}

describe('persistence', () => {
  test('a restarted server has the same objects, higher versions, and no history', async (t) => {
    const path = await logPath(t);
    const first = await startApi(t, { persistence: { path } });
    const { body: kept } = await first.post(paths.claims, claim('kept'));
    await first.post(paths.configMaps, configMap('gone'));
    await first.post(paths.configMaps, configMap('changed', '1'));
    const { body: changed } = await first.patch(`${paths.configMaps}/changed`, 'merge', { data: { value: '2' } });
    await first.delete(`${paths.configMaps}/gone`);
    const before = first.server.resourceVersion;
    await first.server.close();

    const second = await startApi(t, { persistence: { path } });
    assert.equal(second.server.resourceVersion, before);
    assert.deepEqual((await second.get(`${paths.claims}/kept`)).body, kept);
    assert.deepEqual((await second.get(`${paths.configMaps}/changed`)).body, changed);
    assert.equal((await second.get(`${paths.configMaps}/gone`)).status, 404);
    const { body: next } = await second.post(paths.configMaps, configMap('next'));
    assert.equal(Number(next.metadata.resourceVersion), Number(before) + 1);
    const watch = await second.watch(`${paths.claims}?watch=true&resourceVersion=${kept.metadata.resourceVersion}`);
    const { type, object } = await watch.event();
    assert.deepEqual([type, object.code], ['ERROR', 410]);
  });

  test('a volume that an older release stored without defaults can be updated', async (t) => {
    const path = await logPath(t);
    const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], rbd: { monitors: ['a'], image: 'i' } };
    const metadata = { name: 'old', uid: 'uid-1', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
    const object = { apiVersion: 'v1', kind: 'PersistentVolume', metadata, spec };
    await appendFile(
      path,
      `${JSON.stringify({ rv: 1, op: 'put', storage: 'persistentvolumes', key: '\0old', object })}\n`,
    );
    const api = await startApi(t, { persistence: { path } });
    const labels = { metadata: { labels: { a: 'b' } } };
    const { status, body } = await api.patch(`${paths.volumes}/old`, 'merge', labels);
    const { volumeMode, rbd } = body['spec'] as unknown as { volumeMode: string; rbd: { pool: string } };
    assert.deepEqual([status, volumeMode, rbd.pool], [200, 'Filesystem', 'rbd']);
  });

  test('a last line that was cut short is dropped, anything else broken is refused', async (t) => {
    const path = await logPath(t);
    const first = await startApi(t, { persistence: { path } });
    await first.post(paths.configMaps, configMap('a'));
    await first.server.close();
    await appendFile(path, '{"rv":2000,"op":"put","sto');
    const second = await startApi(t, { persistence: { path } });
    assert.equal((await second.get(`${paths.configMaps}/a`)).status, 200);
    await second.post(paths.configMaps, configMap('b'));
    await second.server.close();
    await appendFile(path, 'broken\n');
    assert.throws(
      () => new ApiServer({ persistence: { path } }),
      /objects\.jsonl:\d+ is not an entry of an object log/,
    );
  });

  test('the file is rewritten when most of it is past', async (t) => {
    const path = await logPath(t);
    const api = await startApi(t, { persistence: { path } });
    const large = 'x'.repeat(100_000);
    await api.post(paths.configMaps, configMap('a'));
    for (let n = 0; n < 30; n++) {
      await api.patch(`${paths.configMaps}/a`, 'merge', { data: { value: `${n}${large}` } });
    }
    await api.post(paths.configMaps, configMap('last'));
    await api.delete(`${paths.configMaps}/last`);
    const { size } = await stat(path);
    assert.ok(size < 1_300_000, `${size} bytes`);
    assert.ok((await readFile(path, 'utf8')).endsWith('\n'));
    const before = api.server.resourceVersion;
    await api.server.close();
    const again = await startApi(t, { persistence: { path } });
    assert.equal((await again.get(`${paths.configMaps}/a`)).body.data.value, `29${large}`);
    assert.equal(again.server.resourceVersion, before);
  });
});
