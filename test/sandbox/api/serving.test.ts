import assert from 'node:assert/strict';
import { request } from 'node:https';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import { CertificateAuthority } from '../../../sandbox/api/certificates.ts';
import { kubernetesVersion } from '../../support/control-plane/programs.ts';
import { claim, configMap, paths, startApi, storageClass, volume } from './api-fixture.ts';

const tableAccept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
const aggregated = (version: string): string =>
  `application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=${version}`;

describe('discovery', () => {
  test('each client gets the newest form it understands', async (t) => {
    const api = await startApi(t);
    const cases = [
      { accept: `${aggregated('v2')},${aggregated('v2beta1')},application/json`, want: 'apidiscovery.k8s.io/v2' },
      { accept: `${aggregated('v2beta1')},application/json`, want: 'apidiscovery.k8s.io/v2beta1' },
      {
        accept: 'application/json;v=v2;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io',
        want: 'apidiscovery.k8s.io/v2',
      },
      { accept: 'application/json', want: 'v1' },
    ];
    for (const { accept, want } of cases) {
      const { body, headers } = await api.get('/apis', { accept });
      assert.equal(body.apiVersion, want);
      if (want === 'v1') continue;
      const version = want.split('/')[1] ?? '';
      const type = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
      assert.equal(headers.get('content-type'), type);
    }
  });

  test('the list of groups leaves the core group out', async (t) => {
    const api = await startApi(t);
    const { body } = await api.get('/apis');
    const names = body.groups.map((group) => group.name);
    assert.equal(body.kind, 'APIGroupList');
    assert.ok(names.includes('storage.k8s.io') && names.includes('events.k8s.io'));
    assert.equal(names.includes(''), false);
    const storage = body.groups.find((group) => group.name === 'storage.k8s.io');
    assert.deepEqual(storage?.preferredVersion, { groupVersion: 'storage.k8s.io/v1', version: 'v1' });
    assert.deepEqual(
      storage.versions.map((each) => each.version),
      ['v1', 'v1beta1'],
    );
  });

  test('the legacy list of a group names subresources, and what is disabled is missing', async (t) => {
    const api = await startApi(t, { disabledResources: ['volumeattributesclasses.storage.k8s.io'] });
    const { body: core } = await api.get('/api/v1');
    const claims = core.resources.find((each) => each.name === 'persistentvolumeclaims');
    assert.deepEqual([claims?.kind, claims?.namespaced, claims?.shortNames], ['PersistentVolumeClaim', true, ['pvc']]);
    assert.ok(core.resources.some((each) => each.name === 'persistentvolumeclaims/status'));
    const { body: storage } = await api.get('/apis/storage.k8s.io/v1');
    assert.equal(
      storage.resources.some((each) => each.name === 'volumeattributesclasses'),
      false,
    );
    assert.equal((await api.get('/apis/storage.k8s.io/v1beta1')).status, 404);
  });

  test('both forms of discovery name the same resources', async (t) => {
    const api = await startApi(t);
    const legacy = new Set<string>();
    for (const { versions } of (await api.get('/apis')).body.groups) {
      for (const { groupVersion } of versions) {
        for (const { name } of (await api.get(`/apis/${groupVersion}`)).body.resources)
          legacy.add(`${groupVersion} ${name}`);
      }
    }
    const found = new Set<string>();
    const { body: discovered } = await api.get('/apis', { accept: aggregated('v2') });
    for (const { metadata, versions } of discovered.items) {
      for (const { version, resources } of versions) {
        for (const { resource, subresources = [] } of resources) {
          found.add(`${metadata.name}/${version} ${resource}`);
          for (const { subresource } of subresources)
            found.add(`${metadata.name}/${version} ${resource}/${subresource}`);
        }
      }
    }
    assert.deepEqual([...found].sort(), [...legacy].sort());
  });

  test('every served version has a schema document, and that of version 2 is an empty one, in protobuf alone', async (t) => {
    const api = await startApi(t);
    const { body } = await api.get('/openapi/v3');
    const pathNames = Object.keys(body.paths);
    assert.ok(pathNames.includes('api/v1') && pathNames.includes('apis/snapshot.storage.k8s.io/v1'));
    for (const { serverRelativeURL } of Object.values(body.paths)) {
      assert.equal((await api.get(serverRelativeURL)).status, 200);
    }
    const { body: core } = await api.get('/openapi/v3/api/v1');
    const claims = core.paths['/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}'];
    assert.ok(claims?.patch.parameters.some((each) => each.name === 'fieldValidation'));
    const { status, headers, text } = await api.get('/openapi/v2', {
      accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    });
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
    assert.equal(text, '\n\u00032.0');
    assert.equal((await api.get('/openapi/v2')).status, 404);
  });

  test('the version is that of the control plane which the end-to-end tests compare it with', async (t) => {
    const api = await startApi(t);
    const { body } = await api.get('/version?timeout=32s');
    assert.equal(body.gitVersion, `v${await kubernetesVersion()}+embedded`);
  });

  test('health', async (t) => {
    const api = await startApi(t);
    assert.equal((await api.get('/readyz')).text, 'ok');
    assert.equal((await api.call('HEAD', '/version')).status, 200);
  });
});

describe('custom resources', () => {
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'things', singular: 'thing', kind: 'Thing', shortNames: ['th'] },
      versions: [{ name: 'v1', served: true, storage: true, subresources: { status: {} } }],
    },
  };
  const things = '/apis/example.com/v1/namespaces/default/things';

  test('a definition is served as long as it is there', async (t) => {
    const api = await startApi(t);
    assert.equal((await api.get(things)).status, 404);
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    assert.equal((await api.post(definitions, definition)).status, 201);
    const { body } = await api.get(`${definitions}/things.example.com`);
    assert.deepEqual(
      body.status.conditions.map(({ type, status }) => `${type}=${status}`),
      ['NamesAccepted=True', 'Established=True'],
    );
    const created = await api.post(things, {
      metadata: { name: 'a' },
      spec: { nodeName: 'x' },
      status: { phase: 'p' },
    });
    assert.equal(created.status, 201);
    assert.equal(created.body.metadata.generation, 1);
    assert.equal('status' in created.body, false);
    assert.equal((await api.get('/apis/example.com/v1')).body.resources[0]?.kind, 'Thing');
    assert.equal((await api.get('/openapi/v3/apis/example.com/v1')).status, 200);
    await api.delete(`${definitions}/things.example.com`);
    assert.equal((await api.get(things)).status, 404);
    assert.equal((await api.get('/apis/example.com')).status, 404);
  });

  test('a definition of a built-in kind changes nothing', async (t) => {
    const api = await startApi(t);
    const spec = {
      ...definition.spec,
      group: 'snapshot.storage.k8s.io',
      names: { plural: 'volumesnapshots', kind: 'Other' },
    };
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const name = 'volumesnapshots.snapshot.storage.k8s.io';
    await api.post(definitions, { ...definition, metadata: { name }, spec });
    await api.delete(`${definitions}/${name}`);
    assert.equal((await api.get(paths.snapshots)).body.kind, 'VolumeSnapshotList');
  });
});

describe('content', () => {
  test('only protobuf is not acceptable, and a foreign body is not read', async (t) => {
    const api = await startApi(t);
    const accept = { accept: 'application/vnd.kubernetes.protobuf' };
    assert.equal((await api.get(paths.claims, accept)).status, 406);
    const both = { accept: 'application/vnd.kubernetes.protobuf,application/json' };
    assert.equal((await api.get(paths.claims, both)).status, 200);
    const xml = await api.call('POST', paths.claims, { body: '<a/>', contentType: 'text/xml' });
    assert.equal(xml.status, 415);
    const large = await api.post(paths.configMaps, configMap('a', 'x'.repeat(3 * 1024 * 1024)));
    assert.equal(large.status, 413);
    const broken = await api.call('POST', paths.configMaps, { body: '{' });
    assert.equal(broken.status, 400);
  });

  test('YAML bodies are read', async (t) => {
    const api = await startApi(t);
    const body = 'metadata: {name: a}\ndata:\n  value: b\n';
    const answer = await api.call('POST', paths.configMaps, { body, contentType: 'application/yaml' });
    assert.equal(answer.status, 201);
    assert.equal(answer.body.data.value, 'b');
  });

  test('every answer has its length, an audit id and no caching', async (t) => {
    const api = await startApi(t);
    const { headers } = await api.get(paths.claims);
    assert.equal(headers.get('cache-control'), 'no-cache, private');
    assert.match(headers.get('audit-id') ?? '', /^[0-9a-f-]{36}$/);
    assert.ok(Number(headers.get('content-length')) > 0);
  });
});

describe('tables', () => {
  const cells = async (api: Awaited<ReturnType<typeof startApi>>, path: string): Promise<Record<string, unknown>[]> => {
    const { body } = await api.get(path, { accept: tableAccept });
    assert.equal(body.kind, 'Table');
    const names: string[] = body.columnDefinitions.map((column) => column.name);
    return body.rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row.cells[index]])));
  };

  test('volumes, claims and classes show their columns', async (t) => {
    const api = await startApi(t);
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    await api.post(paths.classes, { ...storageClass('fast'), metadata: { name: 'fast', annotations } });
    await api.post(paths.volumes, volume('v', { claimRef: { namespace: 'default', name: 'a' } }));
    await api.post(paths.claims, claim('a', { volumeName: 'v', accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] }));
    const status = { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] };
    await api.patch(`${paths.claims}/a/status`, 'merge', { status });
    await api.post(paths.claims, claim('b'));
    await api.delete(`${paths.claims}/b`);
    const [storage] = await cells(api, paths.classes);
    assert.equal(storage?.['Name'], 'fast (default)');
    assert.deepEqual(
      [storage['ReclaimPolicy'], storage['VolumeBindingMode'], storage['AllowVolumeExpansion']],
      ['Delete', 'Immediate', 'false'],
    );
    const [pv] = await cells(api, paths.volumes);
    assert.deepEqual(
      [
        pv?.['Capacity'],
        pv?.['Access Modes'],
        pv?.['Reclaim Policy'],
        pv?.['Status'],
        pv?.['Claim'],
        pv?.['VolumeAttributesClass'],
      ],
      ['1Gi', 'RWO', 'Retain', 'Pending', 'default/a', '<unset>'],
    );
    const [bound, terminating] = await cells(api, paths.claims);
    assert.deepEqual(
      [bound?.['Status'], bound?.['Volume'], bound?.['Capacity'], bound?.['Access Modes'], bound?.['StorageClass']],
      ['Bound', 'v', '1Gi', 'RWO,ROX', 'fast'],
    );
    assert.deepEqual([terminating?.['Status'], terminating?.['Capacity']], ['Terminating', '']);
  });

  test('a watched table has one row per event', async (t) => {
    const api = await startApi(t);
    const watch = await api.watch(`${paths.claims}?watch=true`, { accept: tableAccept });
    await api.post(paths.claims, claim('a'));
    const { type, object } = await watch.event();
    assert.equal(type, 'ADDED');
    assert.equal(object.rows[0]?.cells[0], 'a');
    assert.equal(object.rows[0].object.kind, 'PartialObjectMetadata');
    assert.ok(Number(object.rows[0].object.metadata.resourceVersion) > 0);
  });
});

describe('faults', () => {
  test('a refusal with Retry-After comes as often as told', async (t) => {
    const api = await startApi(t);
    const fault = api.server.faults.add({
      match: { verb: 'list', resource: 'configmaps' },
      action: { type: 'status', code: 429, reason: 'TooManyRequests', retryAfter: 1 },
      times: 2,
    });
    const answers = [await api.get(paths.configMaps), await api.get(paths.configMaps), await api.get(paths.configMaps)];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [429, 429, 200],
    );
    assert.equal(answers[0]?.headers.get('retry-after'), '1');
    assert.equal(fault.hits, 2);
    assert.equal(api.server.requestLog.entries({ fault: 'status' }).length, 2);
  });

  test('a cut after the commit leaves the object behind', async (t) => {
    const api = await startApi(t);
    api.server.faults.add({
      match: { verb: 'create', resource: 'persistentvolumes' },
      action: { type: 'dropAfter' },
      times: 1,
    });
    await assert.rejects(api.post(paths.volumes, volume('v')));
    assert.equal((await api.get(`${paths.volumes}/v`)).status, 200);
    assert.equal((await api.post(paths.volumes, volume('v'))).status, 409);
  });

  test('a cut before the request leaves nothing behind', async (t) => {
    const api = await startApi(t);
    api.server.faults.add({ match: { verb: 'create' }, action: { type: 'dropBefore' }, times: 1 });
    await assert.rejects(api.post(paths.volumes, volume('v')));
    assert.equal((await api.get(`${paths.volumes}/v`)).status, 404);
  });

  test('a stolen resource version makes one update conflict', async (t) => {
    const api = await startApi(t);
    const { body: created } = await api.post(paths.configMaps, configMap('a'));
    api.server.faults.add({ match: { verb: 'update', name: 'a' }, action: { type: 'conflictOnce' }, times: 1 });
    assert.equal((await api.put(`${paths.configMaps}/a`, created)).status, 409);
    const { body: fresh } = await api.get(`${paths.configMaps}/a`);
    assert.equal((await api.put(`${paths.configMaps}/a`, fresh)).status, 200);
  });

  test('a watcher that resumes after each cut misses nothing', async (t) => {
    const api = await startApi(t);
    api.server.faults.add({ match: { watch: true }, action: { type: 'watchCut', afterEvents: 7, how: 'reset' } });
    let rv = api.server.resourceVersion;
    const known = new Map<string, string>();
    const writing = (async () => {
      for (let n = 0; n < 100; n++) {
        await api.post(paths.configMaps, configMap(`c${n % 40}`, String(n)));
        await api.patch(`${paths.configMaps}/c${n % 40}`, 'merge', { data: { value: `p${n}` } });
        if (n % 5 === 0) await api.delete(`${paths.configMaps}/c${n % 40}`);
      }
      await api.post(paths.configMaps, configMap('last'));
    })();
    let cuts = 0;
    while (!known.has('last')) {
      const watch = await api.watch(`${paths.configMaps}?watch=true&resourceVersion=${rv}`);
      try {
        for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
          const { name, resourceVersion } = event.object.metadata;
          rv = resourceVersion;
          if (event.type === 'DELETED') known.delete(name);
          else known.set(name, event.object.data.value);
          if (known.has('last')) break;
        }
      } catch {
        cuts++;
      }
    }
    await writing;
    assert.ok(cuts > 5, `${cuts} cuts`);
    const { body } = await api.get(paths.configMaps);
    assert.deepEqual(
      Object.fromEntries([...known].sort(([a], [b]) => (a < b ? -1 : 1))),
      Object.fromEntries(body.items.map((item) => [item.metadata.name, item.data.value])),
    );
  });

  test('clients control faults over HTTP only where that is enabled', async (t) => {
    const closed = await startApi(t);
    assert.equal((await closed.post('/embedded/faults', { action: { type: 'dropBefore' } })).status, 404);
    const api = await startApi(t, { faults: true });
    assert.equal((await api.post('/embedded/faults', { action: { type: 'delay' } })).status, 400);
    const rule = { match: { resource: 'nodes' }, action: { type: 'htmlBody', code: 502 } };
    assert.equal((await api.post('/embedded/faults', rule)).status, 201);
    const { status, text } = await api.get('/api/v1/nodes');
    assert.equal(status, 502);
    assert.ok(text.includes('<html>'));
    await api.delete('/embedded/faults');
    assert.equal((await api.get('/api/v1/nodes')).status, 200);
    const { text: log } = await api.get('/embedded/requests');
    const { items } = JSON.parse(log) as { items: { resource: string; fault: string; status: number }[] };
    const nodes = items.filter(({ resource }) => resource === 'nodes');
    assert.deepEqual(
      nodes.map(({ fault, status: answered }) => [fault, answered]),
      [
        ['htmlBody', 502],
        ['', 200],
      ],
    );
    await api.delete('/embedded/requests');
    assert.equal(api.server.requestLog.entries({ resource: 'nodes' }).length, 0);
  });
});

describe('access', () => {
  const user = { name: 'system:serviceaccount:default:p', groups: ['system:serviceaccounts'] };
  const auth = {
    tokens: { 'token-p': user, 'token-root': { name: 'root', groups: ['system:masters'] } },
    authorization: { mode: 'rbac' as const },
  };
  const as = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

  test('no token or a bad one is 401, a revoked one too', async (t) => {
    const api = await startApi(t, { auth });
    assert.equal((await api.get(paths.claims)).status, 401);
    const { status, body } = await api.get(paths.claims, as('wrong'));
    assert.equal(status, 401);
    assert.deepEqual([body.reason, body.message], ['Unauthorized', 'Unauthorized']);
    assert.equal((await api.get(paths.claims, as('token-root'))).status, 200);
    api.server.authentication.revoke('token-root');
    assert.equal((await api.get(paths.claims, as('token-root'))).status, 401);
    assert.equal(api.server.requestLog.entries({ user: 'root' }).length, 1);
  });

  test('over TLS the same, and a client certificate is a user', async (t) => {
    const server = new ApiServer({ tls: true, auth });
    const { url } = await server.start();
    t.after(() => server.close());
    const ca = server.ca ?? '';
    const status = (headers: Record<string, string>, pair: { cert?: string; key?: string } = {}) =>
      new Promise<number | undefined>((resolve, reject) => {
        const options = { ca, headers, agent: false as const, ...pair };
        request(`${url}/api/v1/persistentvolumes`, options, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on('error', reject)
          .end();
      });
    assert.equal(await status(as('wrong')), 401);
    assert.equal(await status({}), 401);
    assert.equal(await status(as('token-root')), 200);
    assert.equal(await status({}, server.certificates?.client('admin', ['system:masters'])), 200);
    assert.equal(await status({}, server.certificates?.client('nobody')), 403);
    assert.equal(
      await status({}, new CertificateAuthority({ nowMs: Date.now() }).client('admin', ['system:masters'])),
      401,
    );
    await assert.rejects(fetch(url), 'who does not know the authority does not trust the server');
  });

  test('what nobody granted is forbidden in the exact words, until it is granted', async (t) => {
    const api = await startApi(t, { auth });
    const create = (name: string) => api.call('POST', paths.volumes, { body: volume(name), headers: as('token-p') });
    const { status, body } = await create('v');
    assert.equal(status, 403);
    assert.equal(
      body.message,
      'persistentvolumes is forbidden: User "system:serviceaccount:default:p" cannot create resource ' +
        '"persistentvolumes" in API group "" at the cluster scope',
    );
    assert.deepEqual(body.details, { kind: 'persistentvolumes' });
    const named = await api.get('/apis/coordination.k8s.io/v1/namespaces/default/leases/l', as('token-p'));
    assert.equal(
      named.body.message,
      'leases.coordination.k8s.io "l" is forbidden: User "system:serviceaccount:default:p" cannot get resource ' +
        '"leases" in API group "coordination.k8s.io" in the namespace "default"',
    );
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const root = as('token-root');
    const role = {
      metadata: { name: 'volumes' },
      rules: [{ apiGroups: [''], resources: ['persistentvolumes'], verbs: ['create'] }],
    };
    const binding = {
      metadata: { name: 'p:volumes' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'p' }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'volumes' },
    };
    assert.equal((await api.call('POST', `${rbac}/clusterroles`, { body: role, headers: root })).status, 201);
    assert.equal((await api.call('POST', `${rbac}/clusterrolebindings`, { body: binding, headers: root })).status, 201);
    assert.equal((await create('v')).status, 201);
    assert.equal((await api.get(`${paths.volumes}/v`, as('token-p'))).status, 403);
  });

  test('a role binding holds in its namespace, and a role for a status not for the rest', async (t) => {
    const api = await startApi(t, { auth });
    api.server.authorization.setGrants([
      {
        subjects: ['system:serviceaccounts'],
        namespace: 'default',
        rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }],
      },
      {
        subjects: [user.name],
        rules: [{ apiGroups: [''], resources: ['persistentvolumes/status'], verbs: ['patch'] }],
      },
      {
        subjects: [user.name],
        rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['s'], verbs: ['get'] }],
      },
    ]);
    const status = async (path: string): Promise<number> => (await api.get(path, as('token-p'))).status;
    assert.equal(await status(paths.configMaps), 200);
    assert.equal(await status('/api/v1/namespaces/kube-system/configmaps'), 403);
    assert.equal(await status('/api/v1/configmaps'), 403);
    assert.equal(await status('/api/v1/namespaces/default/secrets/s'), 404);
    assert.equal(await status('/api/v1/namespaces/default/secrets/t'), 403);
    const patch = { body: {}, contentType: 'application/merge-patch+json', headers: as('token-p') };
    assert.equal((await api.call('PATCH', `${paths.volumes}/v/status`, patch)).status, 404);
    assert.equal((await api.call('PATCH', `${paths.volumes}/v`, patch)).status, 403);
    assert.equal(await status('/version'), 200);
  });

  test('a minted token is its service account, as it can ask itself', async (t) => {
    const api = await startApi(t, { auth });
    const root = as('token-root');
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    await api.call('POST', accounts, { body: { metadata: { name: 'p' } }, headers: root });
    const minted = await api.call('POST', `${accounts}/p/token`, { body: { spec: {} }, headers: root });
    assert.equal(minted.status, 201);
    const headers = as(minted.body.status.token);
    const review = await api.call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {}, headers });
    assert.equal(review.body.status.userInfo.username, user.name);
    const spec = { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } };
    const access = await api.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      body: { spec },
      headers,
    });
    assert.deepEqual(access.body.status, { allowed: false });
  });
});

describe('in process', () => {
  test('a controller writes by the rules of HTTP clients and is seen by them and in the log', async (t) => {
    const api = await startApi(t);
    const client = api.server.client('system:serviceaccount:kube-system:binder');
    const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
    const watch = await api.watch(`${paths.claims}?watch=true`);
    const events: string[] = [];
    const arrived = Promise.withResolvers<undefined>();
    const subscription = client.subscribe(claims, ({ type, object }) => {
      events.push(`${type} ${object.metadata.name}`);
      if (type === 'DELETED') arrived.resolve(undefined);
    });
    const created = client.create(claims, { ...claim('a'), metadata: { name: 'a', namespace: 'default' } });
    assert.deepEqual(events, [], 'never inside the commit');
    assert.throws(() => client.create(claims, { ...claim('a'), metadata: { name: 'a', namespace: 'default' } }), {
      reason: 'AlreadyExists',
      code: 409,
    });
    assert.throws(() => Object.assign(created.metadata, { name: 'b' }), TypeError);
    client.updateStatus(claims, { ...created, status: { phase: 'Bound' } });
    assert.throws(() => client.update(claims, created), { reason: 'Conflict' });
    client.delete(claims, { namespace: 'default', name: 'a' });
    const held = client.get(claims, { namespace: 'default', name: 'a' });
    assert.ok(held?.metadata.deletionTimestamp);
    client.update(claims, { ...held, metadata: { ...held.metadata, finalizers: [] } });
    assert.equal(client.get(claims, { namespace: 'default', name: 'a' }), undefined);
    await arrived.promise;
    subscription.close();
    assert.deepEqual(events, ['ADDED a', 'MODIFIED a', 'MODIFIED a', 'DELETED a']);
    assert.equal((await watch.event()).type, 'ADDED');
    const logged = api.server.requestLog.entries({ user: 'system:serviceaccount:kube-system:binder' });
    assert.deepEqual(
      logged.map(({ verb, resource, status }) => `${verb} ${resource} ${status}`),
      [
        'create persistentvolumeclaims 201',
        'create persistentvolumeclaims 409',
        'update persistentvolumeclaims/status 200',
        'update persistentvolumeclaims 409',
        'delete persistentvolumeclaims 200',
        'update persistentvolumeclaims 200',
      ],
    );
  });

  test('a repeated event is counted, and every event goes after its time', async (t) => {
    let fire: (() => void) | undefined;
    let nowMs = 0;
    const clock = {
      ...systemClock,
      monotonicMs: () => nowMs,
      after: (ms: number, run: () => void) => {
        if (ms < 3_000_000) return systemClock.after(ms, run);
        fire = run;
        return { cancel: () => (fire = undefined) };
      },
    };
    const api = await startApi(t, { clock });
    const client = api.server.client('c');
    const about = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'a', namespace: 'default', uid: 'u' },
    };
    client.recordEvent(about, 'Normal', 'Reason', 'text', 'component');
    client.recordEvent(about, 'Normal', 'Reason', 'text', 'component');
    client.recordEvent(about, 'Warning', 'Other', 'text', 'component');
    const { body } = await api.get(paths.events);
    assert.deepEqual(
      body.items.map((event) => [event.reason, event.count]),
      [
        ['Reason', 2],
        ['Other', 1],
      ],
    );
    const watch = await api.watch(
      `${paths.events}?watch=true&timeoutSeconds=60&resourceVersion=${body.metadata.resourceVersion}`,
    );
    nowMs += 3_600_000;
    fire?.();
    assert.deepEqual([(await watch.event()).type, (await watch.event()).type], ['DELETED', 'DELETED']);
    assert.deepEqual((await api.get(paths.events)).body.items, []);
    client.recordEvent(about, 'Normal', 'Reason', 'text', 'component');
    assert.equal((await api.get(paths.events)).body.items[0]?.count, 1);
  });

  test('a seeded server gives the same uids and names each time', async (t) => {
    const seeded = (): (() => number) => {
      let state = 1;
      return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
    };
    const run = async (): Promise<string[]> => {
      const api = await startApi(t, { random: seeded() });
      const { body } = await api.post(paths.configMaps, { metadata: { generateName: 'a-' } });
      return [body.metadata.name, body.metadata.uid, body.metadata.resourceVersion];
    };
    assert.deepEqual(await run(), await run());
  });
});
