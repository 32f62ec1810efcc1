import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { paths, startApi } from './api-fixture.ts';
import type { Answer, Api } from './api-fixture.ts';

const rbac = '/apis/rbac.authorization.k8s.io/v1';
const accounts = '/api/v1/namespaces/default/serviceaccounts';
const admin = { authorization: 'Bearer admin' };
const auth = {
  tokens: { admin: { name: 'kubernetes-admin', groups: ['system:masters'] } },
  anonymous: true,
  authorization: { mode: 'rbac' as const },
};

/** A server with a cluster's authorization, and a token for a service account without any right. */
async function startWithAccount(t: TestContext): Promise<{ api: Api; headers: Record<string, string> }> {
  const api = await startApi(t, { auth });
  const post = (path: string, body: unknown): Promise<Answer> => api.call('POST', path, { body, headers: admin });
  assert.equal((await post(accounts, { metadata: { name: 'driver' } })).status, 201);
  const { body } = await post(`${accounts}/driver/token`, { spec: {} });
  return { api, headers: { authorization: `Bearer ${body.status.token}` } };
}

async function grant(api: Api, rules: object[]): Promise<void> {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'granted' };
  const subjects = [{ kind: 'ServiceAccount', namespace: 'default', name: 'driver' }];
  const metadata = { name: 'granted' };
  for (const [plural, body] of [
    ['clusterroles', { metadata, rules }],
    ['clusterrolebindings', { metadata, roleRef, subjects }],
  ] as const) {
    assert.equal((await api.call('POST', `${rbac}/${plural}`, { body, headers: admin })).status, 201);
  }
}

describe('tokens', () => {
  test('one that nobody issued is refused even where everybody may do everything', async (t) => {
    const api = await startApi(t);
    assert.equal((await api.get(paths.claims)).status, 200);
    const { status, body } = await api.get(paths.claims, { authorization: 'Bearer made-up' });
    assert.deepEqual([status, body.reason], [401, 'Unauthorized']);
    assert.equal((await api.get(paths.claims, { authorization: 'Basic YTpi' })).status, 401);
  });

  test('one that was issued names its service account there, too', async (t) => {
    const api = await startApi(t);
    await api.post(accounts, { metadata: { name: 'driver' } });
    const { body } = await api.post(`${accounts}/driver/token`, { spec: {} });
    const headers = { authorization: `Bearer ${body.status.token}` };
    const { status } = await api.get(paths.claims, headers);
    assert.equal(status, 200);
    assert.equal(api.server.requestLog.entries({ user: 'system:serviceaccount:default:driver' }).length, 1);
  });

  test('ends with its service account, and does not come back with one of the same name', async (t) => {
    const api = await startApi(t);
    await api.post(accounts, { metadata: { name: 'driver' } });
    const { body } = await api.post(`${accounts}/driver/token`, { spec: {} });
    const headers = { authorization: `Bearer ${body.status.token}` };
    await api.delete(`${accounts}/driver`);
    assert.equal((await api.get(paths.claims, headers)).status, 401);
    await api.post(accounts, { metadata: { name: 'driver' } });
    assert.equal((await api.get(paths.claims, headers)).status, 401);
  });
});

describe("authorization as a cluster's", () => {
  test('has the roles that a cluster begins with, and cluster-admin gives everything', async (t) => {
    const { api, headers } = await startWithAccount(t);
    const { body } = await api.get(`${rbac}/clusterroles/cluster-admin`, admin);
    assert.equal(body.metadata.labels['kubernetes.io/bootstrapping'], 'rbac-defaults');
    assert.equal((await api.get('/api/v1/nodes', headers)).status, 403);
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
    const subjects = [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'system:serviceaccounts' }];
    const binding = { metadata: { name: 'all' }, roleRef, subjects };
    await api.call('POST', `${rbac}/clusterrolebindings`, { body: binding, headers: admin });
    assert.equal((await api.get('/api/v1/nodes', headers)).status, 200);
    assert.equal((await api.get('/metrics', headers)).status, 404, 'no path is forbidden either');
  });

  test('who shows no credentials is anonymous: sees version and health, and nothing else', async (t) => {
    const api = await startApi(t, { auth });
    assert.equal((await api.get('/version')).status, 200);
    assert.equal((await api.get('/readyz')).status, 200);
    assert.equal((await api.get('/apis')).status, 403);
    const { status, body } = await api.get(paths.claims);
    assert.equal(status, 403);
    assert.match(body.message, /User "system:anonymous" cannot list resource "persistentvolumeclaims"/);
  });

  test('a rule for one name allows a list and a watch of that name alone', async (t) => {
    const { api, headers } = await startWithAccount(t);
    await grant(api, [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['c'], verbs: ['list', 'watch'] }]);
    const status = async (query: string): Promise<number> => (await api.get(paths.configMaps + query, headers)).status;
    assert.equal(await status('?fieldSelector=metadata.name%3Dc'), 200);
    assert.equal(await status('?fieldSelector=metadata.name%3Dd'), 403);
    assert.equal(await status('?fieldSelector=metadata.name!%3Dc'), 403);
    assert.equal(await status(''), 403);
    const watch = await api.watch(`${paths.configMaps}?watch=true&fieldSelector=metadata.name%3Dc`, headers);
    assert.equal(watch.status, 200);
    watch.close();
  });

  test('a right taken away is gone at the next request', async (t) => {
    const { api, headers } = await startWithAccount(t);
    await grant(api, [{ apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['*'] }]);
    assert.equal((await api.get(paths.classes, headers)).status, 200);
    await api.call('DELETE', `${rbac}/clusterrolebindings/granted`, { headers: admin });
    assert.equal((await api.get(paths.classes, headers)).status, 403);
  });

  test('an account lists its own rights', async (t) => {
    const { api, headers } = await startWithAccount(t);
    const rule = { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['s'] };
    await grant(api, [rule, { verbs: ['get'], nonResourceURLs: ['/metrics'] }]);
    const answer = await api.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      body: { spec: { namespace: 'default' } },
      headers,
    });
    const { status } = JSON.parse(answer.text) as {
      status: { resourceRules: object[]; nonResourceRules: { nonResourceURLs: string[] }[]; incomplete: boolean };
    };
    assert.ok(status.resourceRules.some((each) => JSON.stringify(each) === JSON.stringify(rule)));
    assert.ok(status.nonResourceRules.some(({ nonResourceURLs }) => nonResourceURLs.includes('/metrics')));
    assert.equal(status.incomplete, false);
  });

  test('who may impersonate acts as somebody else, with the rights of that one', async (t) => {
    const { api, headers } = await startWithAccount(t);
    await grant(api, [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }]);
    const asDriver = { 'impersonate-user': 'system:serviceaccount:default:driver' };
    assert.equal((await api.get(paths.configMaps, { ...admin, ...asDriver })).status, 200);
    assert.equal((await api.get(paths.claims, { ...admin, ...asDriver })).status, 403);
    const { status, body } = await api.get(paths.claims, { ...headers, 'impersonate-user': 'kubernetes-admin' });
    assert.equal(status, 403);
    assert.match(body.message, /^users "kubernetes-admin" is forbidden: User "\S+driver" cannot impersonate resource/);
    const asMaster = {
      'impersonate-user': 'system:serviceaccount:default:driver',
      'impersonate-group': 'system:masters',
    };
    assert.equal((await api.get(paths.claims, { ...headers, ...asMaster })).status, 403);
    assert.equal((await api.get(paths.claims, { ...admin, ...asMaster })).status, 200);
  });
});
