import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claim, configMap, paths, startApi } from './api-fixture.ts';
import type { Api, Body } from './api-fixture.ts';

const namesOf = (body: Body): string[] => body.items.map((item) => item.metadata.name);

async function createConfigMaps(api: Api, names: string[]): Promise<void> {
  for (const name of names) assert.equal((await api.post(paths.configMaps, configMap(name))).status, 201);
}

describe('listing', () => {
  test('a list is ordered by namespace and name, and an empty one is an empty array', async (t) => {
    const api = await startApi(t);
    const empty = await api.get(paths.configMaps);
    assert.deepEqual(empty.body.items, []);
    await createConfigMaps(api, ['b', 'a', 'c']);
    await api.post('/api/v1/namespaces/kube-system/configmaps', configMap('0'));
    const { body } = await api.get('/api/v1/configmaps');
    assert.deepEqual(namesOf(body), ['a', 'b', 'c', '0']);
    assert.equal(body.kind, 'ConfigMapList');
    assert.equal('kind' in (body.items[0] ?? {}), false);
    assert.equal(body.metadata.resourceVersion, api.server.resourceVersion);
  });

  test('all pages show the state of the first one', async (t) => {
    const api = await startApi(t);
    await createConfigMaps(api, ['a', 'b', 'c', 'd', 'e']);
    const first = (await api.get(`${paths.configMaps}?limit=2`)).body;
    await createConfigMaps(api, ['c2', 'f']);
    await api.delete(`${paths.configMaps}/d`);
    const second = (await api.get(`${paths.configMaps}?limit=2&continue=${first.metadata.continue}`)).body;
    const third = (await api.get(`${paths.configMaps}?limit=2&continue=${second.metadata.continue}`)).body;
    assert.deepEqual([first, second, third].flatMap(namesOf), ['a', 'b', 'c', 'd', 'e']);
    assert.deepEqual(
      [first, second].map(({ metadata }) => metadata.remainingItemCount),
      [3, 1],
    );
    const versions = new Set([first, second, third].map(({ metadata }) => metadata.resourceVersion));
    assert.equal(versions.size, 1);
    assert.equal('continue' in third.metadata, false);
  });

  test('a page whose state was compacted is 410 with a token for the rest', async (t) => {
    const api = await startApi(t);
    await createConfigMaps(api, ['a', 'b', 'c']);
    const first = (await api.get(`${paths.configMaps}?limit=1`)).body;
    await createConfigMaps(api, ['d']);
    api.server.compact();
    const { status, body } = await api.get(`${paths.configMaps}?limit=1&continue=${first.metadata.continue}`);
    assert.equal(status, 410);
    assert.equal(body.reason, 'Expired');
    assert.ok(
      body.message.startsWith('The provided continue parameter is too old to display a consistent list result.'),
    );
    const rest = await api.get(`${paths.configMaps}?continue=${body.metadata.continue}`);
    assert.deepEqual(namesOf(rest.body), ['b', 'c', 'd']);
  });

  test('a resource version from the future is waited for and then refused', async (t) => {
    const api = await startApi(t);
    const { status, headers, body } = await api.get(`${paths.configMaps}?resourceVersion=999999`);
    assert.equal(status, 504);
    assert.equal(body.details.causes[0]?.reason, 'ResourceVersionTooLarge');
    assert.equal(headers.get('retry-after'), '1');
    assert.match(body.message, /^Timeout: Too large resource version: 999999, current: \d+$/);
  });

  test('a resource version that comes in time is answered', async (t) => {
    const api = await startApi(t);
    const next = Number(api.server.resourceVersion) + 1;
    const waiting = api.get(`${paths.configMaps}?resourceVersion=${next}`);
    await createConfigMaps(api, ['a']);
    assert.deepEqual(namesOf((await waiting).body), ['a']);
  });

  test('an exact resource version shows that state', async (t) => {
    const api = await startApi(t);
    await createConfigMaps(api, ['a']);
    const then = api.server.resourceVersion;
    await createConfigMaps(api, ['b']);
    const exact = (query: string) => api.get(`${paths.configMaps}?resourceVersion=${then}${query}`);
    assert.deepEqual(namesOf((await exact('&resourceVersionMatch=Exact')).body), ['a']);
    assert.deepEqual(namesOf((await exact('&limit=5')).body), ['a'], 'the legacy rule');
    assert.deepEqual(namesOf((await exact('')).body), ['a', 'b']);
    api.server.compact();
    assert.equal((await exact('&resourceVersionMatch=Exact')).status, 410);
  });

  test('resource version 0 ignores the limit', async (t) => {
    const api = await startApi(t);
    await createConfigMaps(api, ['a', 'b', 'c']);
    assert.equal((await api.get(`${paths.configMaps}?limit=1&resourceVersion=0`)).body.items.length, 3);
  });

  const badOptions = [
    { name: 'a match rule without a resource version', query: 'resourceVersionMatch=Exact', code: 422 },
    { name: 'exactly any version', query: 'resourceVersionMatch=Exact&resourceVersion=0', code: 422 },
    { name: 'a match rule with a token', query: 'resourceVersionMatch=Exact&resourceVersion=5&continue=x', code: 422 },
    { name: 'initial events of a list', query: 'sendInitialEvents=true', code: 422 },
    { name: 'a match rule of a plain watch', query: 'watch=1&resourceVersionMatch=NotOlderThan', code: 422 },
    { name: 'initial events without a match rule', query: 'watch=1&sendInitialEvents=true', code: 422 },
    { name: 'a token with a resource version', query: 'continue=x&resourceVersion=5', code: 400 },
    { name: 'a token that is none', query: 'continue=x', code: 400 },
    { name: 'an unreadable label selector', query: `labelSelector=${encodeURIComponent('a in b')}`, code: 400 },
  ];
  for (const { name, query, code } of badOptions) {
    test(`${name} is refused with ${code}`, async (t) => {
      const api = await startApi(t);
      const { status, body } = await api.get(`${paths.configMaps}?${query}`);
      assert.equal(status, code);
      if (code === 422) assert.deepEqual([body.details.kind, body.details.group], ['ListOptions', 'meta.k8s.io']);
    });
  }

  test('a field that pods cannot be selected by is 400', async (t) => {
    const api = await startApi(t);
    const { status, body } = await api.get(`${paths.pods}?fieldSelector=spec.foo%3D1`);
    assert.equal(status, 400);
    assert.equal(body.message, 'field label not supported: spec.foo');
  });

  test('events are found by what they are about, terms in any order', async (t) => {
    const api = await startApi(t);
    const about = { kind: 'PersistentVolumeClaim', name: 'a', namespace: 'default', uid: 'u1' };
    await api.post(paths.events, { metadata: { name: 'e1' }, involvedObject: about });
    await api.post(paths.events, { metadata: { name: 'e2' }, involvedObject: { ...about, uid: 'u2' } });
    await api.post(paths.events, { metadata: { name: 'e3' }, involvedObject: { kind: 'PersistentVolume', name: 'v' } });
    const terms = Object.entries(about).map(([field, value]) => `involvedObject.${field}=${value}`);
    for (const order of [terms, [...terms].reverse()]) {
      const { body } = await api.get(`${paths.events}?fieldSelector=${encodeURIComponent(order.join(','))}`);
      assert.deepEqual(namesOf(body), ['e1']);
    }
    const clusterScoped = encodeURIComponent('involvedObject.namespace=,involvedObject.kind=PersistentVolume');
    assert.deepEqual(namesOf((await api.get(`/api/v1/events?fieldSelector=${clusterScoped}`)).body), ['e3']);
  });

  test('both groups of events show the same objects in their own words', async (t) => {
    const api = await startApi(t);
    const path = '/apis/events.k8s.io/v1/namespaces/default/events';
    await api.post(path, { metadata: { name: 'e' }, regarding: { kind: 'Pod', name: 'p' }, note: 'text', reason: 'R' });
    const core = (await api.get(`${paths.events}/e`)).body;
    assert.equal(core.apiVersion, 'v1');
    assert.deepEqual([core.message, core.involvedObject.name], ['text', 'p']);
    const patched = await api.patch(`${paths.events}/e`, 'strategic', { count: 2, message: 'more' });
    assert.equal(patched.status, 200);
    const other = (await api.get(`${path}/e`)).body;
    assert.equal(other.apiVersion, 'events.k8s.io/v1');
    assert.deepEqual([other.note, other.deprecatedCount], ['more', 2]);
    assert.equal('message' in other, false);
  });

  test('what is not served is 404', async (t) => {
    const api = await startApi(t, { disabledResources: ['snapshot.storage.k8s.io'] });
    for (const path of ['/api/v1/nosuch', '/apis/no.such/v1/things', paths.snapshots, '/nosuch']) {
      const { status, body } = await api.get(path);
      assert.equal(status, 404, path);
      assert.equal(body.message, 'the server could not find the requested resource');
    }
    assert.equal((await api.call('PUT', '/api/v1/nodes', { body: {} })).status, 405);
    assert.equal((await api.get('/api/v1/nodes/n9')).body.message, 'nodes "n9" not found');
  });
});

describe('watching', () => {
  const types = async (watch: Awaited<ReturnType<Api['watch']>>, count: number): Promise<string[]> => {
    const seen: string[] = [];
    for (let index = 0; index < count; index++) {
      const event = await watch.event();
      seen.push(`${event.type} ${event.object.metadata.name}`);
    }
    return seen;
  };

  test('every change comes once and in order', async (t) => {
    const api = await startApi(t);
    const { body: list } = await api.get(paths.configMaps);
    const watch = await api.watch(`${paths.configMaps}?watch=true&resourceVersion=${list.metadata.resourceVersion}`);
    await api.post(paths.configMaps, configMap('a'));
    await api.patch(`${paths.configMaps}/a`, 'merge', { data: { value: 'b' } });
    await api.delete(`${paths.configMaps}/a`);
    const events = [await watch.event(), await watch.event(), await watch.event()];
    assert.deepEqual(
      events.map(({ type }) => type),
      ['ADDED', 'MODIFIED', 'DELETED'],
    );
    assert.ok(events.every(({ object }) => object.kind === 'ConfigMap' && object.apiVersion === 'v1'));
    const versions = events.map(({ object }) => Number(object.metadata.resourceVersion));
    assert.deepEqual(
      versions,
      [...new Set(versions)].sort((x, y) => x - y),
    );
    assert.equal(events[2]?.object.data.value, 'b');
  });

  test('a watch from any state begins with what is there', async (t) => {
    const api = await startApi(t);
    await createConfigMaps(api, ['a', 'b', 'c']);
    for (const from of ['', '&resourceVersion=0']) {
      const watch = await api.watch(`${paths.configMaps}?watch=true${from}`);
      assert.deepEqual(await types(watch, 3), ['ADDED a', 'ADDED b', 'ADDED c']);
      watch.close();
    }
  });

  test('changes missed since a resource version are caught up with', async (t) => {
    const api = await startApi(t);
    const from = api.server.resourceVersion;
    await createConfigMaps(api, ['a', 'b']);
    const watch = await api.watch(`${paths.configMaps}?watch=true&resourceVersion=${from}`);
    assert.deepEqual(await types(watch, 2), ['ADDED a', 'ADDED b']);
    await api.delete(`${paths.configMaps}/a`);
    assert.deepEqual(await types(watch, 1), ['DELETED a']);
  });

  test('a watch from a compacted state gets one ERROR event and ends', async (t) => {
    const api = await startApi(t, { historyLimit: 5 });
    const from = api.server.resourceVersion;
    await createConfigMaps(api, ['a', 'b', 'c', 'd', 'e', 'f']);
    const watch = await api.watch(`${paths.configMaps}?watch=true&resourceVersion=${from}`);
    assert.equal(watch.status, 200);
    const { type, object } = await watch.event();
    assert.equal(type, 'ERROR');
    assert.deepEqual([object.kind, object.code, object.reason], ['Status', 410, 'Expired']);
    assert.match(object.message, /^too old resource version: \d+ \(\d+\)$/);
    assert.equal(await watch.next(), undefined);
  });

  test('a watch from a compacted state is refused with HTTP 410 where that is set', async (t) => {
    const api = await startApi(t, { goneAsHttpStatus: true });
    const from = api.server.resourceVersion;
    await createConfigMaps(api, ['a']);
    api.server.compact();
    assert.equal((await api.get(`${paths.configMaps}?watch=true&resourceVersion=${from}`)).status, 410);
  });

  test('a watch ends cleanly after its time', async (t) => {
    const api = await startApi(t);
    const started = performance.now();
    const watch = await api.watch(`${paths.configMaps}?watch=true&timeoutSeconds=1`);
    assert.equal(await watch.next(), undefined);
    const tookMs = performance.now() - started;
    assert.ok(tookMs > 900, `${tookMs} ms`);
  });

  test('bookmarks tell the resource version while nothing changes', async (t) => {
    const api = await startApi(t, { bookmarkIntervalMs: 50 });
    const { body: list } = await api.get(paths.configMaps);
    const from = list.metadata.resourceVersion;
    const watch = await api.watch(`${paths.configMaps}?watch=true&allowWatchBookmarks=true&resourceVersion=${from}`);
    const { type, object } = await watch.event();
    assert.equal(type, 'BOOKMARK');
    assert.deepEqual(object, {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { resourceVersion: api.server.resourceVersion, creationTimestamp: null },
    });
    const before = api.server.resourceVersion;
    await api.post(paths.claims, claim('elsewhere'));
    let later = await watch.event();
    while (later.object.metadata.resourceVersion === before) later = await watch.event(); // sent before the change
    assert.deepEqual([later.type, later.object.metadata.resourceVersion], ['BOOKMARK', api.server.resourceVersion]);
  });

  test('an object that starts and stops matching is added and deleted', async (t) => {
    const api = await startApi(t);
    const from = api.server.resourceVersion;
    const watch = await api.watch(`${paths.configMaps}?watch=true&resourceVersion=${from}&labelSelector=a%3Db`);
    await api.post(paths.configMaps, configMap('a'));
    await api.patch(`${paths.configMaps}/a`, 'merge', { metadata: { labels: { a: 'b' } } });
    await api.patch(`${paths.configMaps}/a`, 'merge', { data: { value: '2' } });
    await api.patch(`${paths.configMaps}/a`, 'merge', { metadata: { labels: { a: null } } });
    await api.delete(`${paths.configMaps}/a`);
    await api.post(paths.configMaps, configMap('b', '', { a: 'b' }));
    assert.deepEqual(await types(watch, 4), ['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED b']);
  });

  test('a streamed list ends with a marked bookmark and goes on as a watch', async (t) => {
    const api = await startApi(t);
    await createConfigMaps(api, ['a', 'b']);
    const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const rv = api.server.resourceVersion;
    const watch = await api.watch(`${paths.configMaps}?${query}`);
    assert.deepEqual(await types(watch, 2), ['ADDED a', 'ADDED b']);
    const { type, object } = await watch.event();
    assert.equal(type, 'BOOKMARK');
    assert.equal(object.metadata.annotations['k8s.io/initial-events-end'], 'true');
    assert.equal(object.metadata.resourceVersion, rv);
    await createConfigMaps(api, ['c']);
    assert.deepEqual(await types(watch, 1), ['ADDED c']);
  });

  test('with the feature off the parameters are refused', async (t) => {
    const api = await startApi(t, { watchList: false });
    const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const { status, body } = await api.get(`${paths.configMaps}?${query}`);
    assert.equal(status, 422);
    assert.equal(body.details.causes[0]?.field, 'sendInitialEvents');
  });

  test('a watch on the path of an object is about that object', async (t) => {
    const api = await startApi(t);
    await createConfigMaps(api, ['a', 'b']);
    const watch = await api.watch(`${paths.configMaps}/b?watch=true`);
    assert.deepEqual(await types(watch, 1), ['ADDED b']);
  });

  test('three watchers see a thousand claims in order', async (t) => {
    const api = await startApi(t);
    const from = api.server.resourceVersion;
    const watches = await Promise.all(
      [1, 2, 3].map(() => api.watch(`${paths.claims}?watch=true&resourceVersion=${from}`)),
    );
    const create = async (): Promise<void> => {
      // All at once would open a thousand connections, of which the server closes those that idle for seconds.
      for (let n = 0; n < 1000; n += 50) {
        const names = Array.from({ length: 50 }, (_, index) => `c${n + index}`);
        const answers = await Promise.all(names.map((name) => api.post(paths.claims, claim(name))));
        assert.ok(answers.every(({ status }) => status === 201));
      }
    };
    const creating = create();
    for (const watch of watches) {
      const seen = new Set<string>();
      let last = 0;
      while (seen.size < 1000) {
        const { type, object } = await watch.event();
        assert.equal(type, 'ADDED');
        assert.ok(Number(object.metadata.resourceVersion) > last);
        last = Number(object.metadata.resourceVersion);
        seen.add(object.metadata.name);
      }
    }
    await creating;
  });

  test('closing the server ends open watches cleanly', async (t) => {
    const api = await startApi(t);
    const watch = await api.watch(`${paths.configMaps}?watch=true`);
    const ended = watch.next();
    await api.server.close();
    assert.equal(await ended, undefined);
  });
});
