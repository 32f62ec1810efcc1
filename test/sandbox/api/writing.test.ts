import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claim, configMap, paths, snapshot, startApi, storageClass, volume } from './api-fixture.ts';
import type { Answer, Draft, PatchKind } from './api-fixture.ts';

describe('creating', () => {
  const refused: {
    name: string;
    path: string;
    body: Draft;
    code: number;
    reason: string | undefined;
    field?: string;
    text?: string;
  }[] = [
    {
      name: 'a claim without access modes',
      path: paths.claims,
      body: claim('a', { accessModes: undefined }),
      code: 422,
      reason: 'Invalid',
      field: 'spec.accessModes',
    },
    {
      name: 'a claim for nothing',
      path: paths.claims,
      body: claim('a', { resources: { requests: { storage: '0' } } }),
      code: 422,
      reason: 'Invalid',
      field: 'spec.resources[storage]',
    },
    {
      name: 'a size that is no quantity',
      path: paths.claims,
      body: claim('a', { resources: { requests: { storage: 'abc' } } }),
      code: 400,
      reason: 'BadRequest',
      text: 'quantities must match the regular expression',
    },
    {
      name: 'a name with capitals',
      path: paths.claims,
      body: claim('Bad_Name'),
      code: 422,
      reason: 'Invalid',
      field: 'metadata.name',
      text: 'a lowercase RFC 1123 subdomain must consist of',
    },
    {
      name: 'ReadWriteOncePod beside another mode',
      path: paths.claims,
      body: claim('a', { accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] }),
      code: 422,
      reason: 'Invalid',
      field: 'spec.accessModes',
      text: 'Forbidden',
    },
    {
      name: 'a namespace that is not there',
      path: '/api/v1/namespaces/nope/persistentvolumeclaims',
      body: claim('a'),
      code: 404,
      reason: 'NotFound',
      text: 'namespaces "nope" not found',
    },
    {
      name: 'a volume without a source',
      path: paths.volumes,
      body: volume('a', { csi: undefined }),
      code: 422,
      reason: 'Invalid',
      field: 'spec',
      text: 'must specify a volume type',
    },
    {
      name: 'a volume with two sources',
      path: paths.volumes,
      body: volume('a', { nfs: { server: 's', path: '/' } }),
      code: 422,
      reason: 'Invalid',
      text: 'may not specify more than 1 volume type',
    },
    {
      name: 'a class without a provisioner',
      path: paths.classes,
      body: storageClass('a', { provisioner: undefined }),
      code: 422,
      reason: 'Invalid',
      field: 'provisioner',
      text: 'StorageClass.storage.k8s.io "a" is invalid: provisioner: Required value',
    },
    {
      name: 'an event of another namespace',
      path: paths.events,
      body: { metadata: { name: 'e' }, involvedObject: { kind: 'Pod', name: 'p', namespace: 'other' } },
      code: 422,
      reason: 'Invalid',
      field: 'involvedObject.namespace',
    },
    {
      name: 'a resource version',
      path: paths.claims,
      body: { ...claim('a'), metadata: { name: 'a', resourceVersion: '5' } },
      code: 500,
      reason: undefined,
      text: 'resourceVersion should not be set on objects to be created',
    },
    {
      name: 'a namespace other than that of the path',
      path: paths.claims,
      body: { ...claim('a'), metadata: { name: 'a', namespace: 'kube-system' } },
      code: 400,
      reason: 'BadRequest',
      text: 'the namespace of the provided object does not match the namespace sent on the request',
    },
  ];
  for (const { name, path, body, code, reason, field, text } of refused) {
    test(`${name} is refused with ${code}`, async (t) => {
      const api = await startApi(t);
      const answer = await api.post(path, body);
      assert.equal(answer.status, code);
      assert.equal(answer.body.kind, 'Status');
      assert.equal(answer.body.status, 'Failure');
      assert.equal(answer.body.code, code);
      assert.equal(answer.body.reason, reason);
      if (field !== undefined) {
        const found = answer.body.details.causes.map(({ field }) => field);
        assert.ok(found.includes(field), `causes name ${found.join()}`);
      }
      if (text !== undefined) assert.ok(answer.body.message.includes(text), answer.body.message);
      const name = body.metadata.name;
      assert.equal((await api.get(`${path}/${name}`)).status, 404);
    });
  }

  test('the second object of a name is refused in the words kubectl shows', async (t) => {
    const api = await startApi(t);
    assert.equal((await api.post(paths.classes, storageClass('fast'))).status, 201);
    const { status, body } = await api.post(paths.classes, storageClass('fast'));
    assert.equal(status, 409);
    assert.equal(body.reason, 'AlreadyExists');
    assert.equal(body.message, 'storageclasses.storage.k8s.io "fast" already exists');
    assert.deepEqual(body.details, { name: 'fast', group: 'storage.k8s.io', kind: 'storageclasses' });
  });

  test('an unknown field is refused when strict, warned of by default, and never stored', async (t) => {
    const api = await startApi(t);
    const strict = await api.post(`${paths.claims}?fieldValidation=Strict`, claim('a', { foo: 1 }));
    assert.equal(strict.status, 400);
    assert.ok(strict.body.message.includes('strict decoding error: unknown field "spec.foo"'), strict.body.message);
    const warned = await api.post(paths.claims, claim('a', { foo: 1 }));
    assert.equal(warned.status, 201);
    assert.equal(warned.headers.get('warning'), '299 - "unknown field \\"spec.foo\\""');
    assert.equal('foo' in warned.body.spec, false);
    const ignored = await api.post(`${paths.claims}?fieldValidation=Ignore`, claim('b', { foo: 1 }));
    assert.equal(ignored.headers.get('warning'), null);
  });

  test('what only the server may set is taken from nobody', async (t) => {
    const api = await startApi(t);
    const { body } = await api.post(paths.claims, {
      ...claim('a'),
      metadata: { name: 'a', uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z', generation: 7, managedFields: [] },
      status: { phase: 'Bound' },
    });
    assert.notEqual(body.metadata.uid, 'mine');
    assert.match(body.metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    assert.notEqual(body.metadata.creationTimestamp, '2001-01-01T00:00:00Z');
    assert.equal('generation' in body.metadata, false);
    assert.deepEqual(body.status, { phase: 'Pending' });
    assert.equal(body.spec.volumeMode, 'Filesystem');
    assert.deepEqual(body.metadata.finalizers, ['kubernetes.io/pvc-protection']);
  });

  test('a new volume is Pending whatever it says', async (t) => {
    const api = await startApi(t);
    const { body } = await api.post(paths.volumes, { ...volume('a'), status: { phase: 'Bound' } });
    assert.equal(body.status.phase, 'Pending');
    assert.equal(body.spec.persistentVolumeReclaimPolicy, 'Retain');
    assert.deepEqual(body.metadata.finalizers, ['kubernetes.io/pv-protection']);
  });

  test('a thousand generated names are all different', async (t) => {
    const api = await startApi(t);
    const names = new Set<string>();
    const create = () => api.post(paths.configMaps, { metadata: { generateName: 'a-' } });
    for (const { status, body } of await Promise.all(Array.from({ length: 1000 }, create))) {
      assert.equal(status, 201);
      assert.match(body.metadata.name, /^a-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      names.add(body.metadata.name);
    }
    assert.equal(names.size, 1000);
  });

  test('quantities are kept in their canonical form', async (t) => {
    const api = await startApi(t);
    const { body } = await api.post(paths.claims, claim('a', { resources: { requests: { storage: '1024Mi' } } }));
    assert.equal(body.spec.resources.requests.storage, '1Gi');
  });

  test('a dry run answers as the real thing and stores nothing', async (t) => {
    const api = await startApi(t);
    const before = api.server.resourceVersion;
    assert.equal((await api.post(`${paths.claims}?dryRun=All`, claim('a'))).status, 201);
    assert.equal((await api.get(`${paths.claims}/a`)).status, 404);
    assert.equal(api.server.resourceVersion, before);
  });

  test('a claim without a class gets the default one', async (t) => {
    const api = await startApi(t);
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    await api.post(paths.classes, { ...storageClass('fast'), metadata: { name: 'fast', annotations } });
    assert.equal((await api.post(paths.claims, claim('a'))).body.spec.storageClassName, 'fast');
    assert.equal((await api.post(paths.claims, claim('b', { storageClassName: '' }))).body.spec.storageClassName, '');
    const beta = claim('c');
    beta.metadata.annotations = { 'volume.beta.kubernetes.io/storage-class': 'other' };
    assert.equal('storageClassName' in (await api.post(paths.claims, beta)).body.spec, false);
  });

  test('of two default classes the newer one wins', async (t) => {
    let nowMs = Date.parse('2026-01-01T00:00:00Z');
    const { systemClock } = await import('../../../src/base/clock.ts');
    const api = await startApi(t, { clock: { ...systemClock, wallMs: () => nowMs } });
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    await api.post(paths.classes, { ...storageClass('z-old'), metadata: { name: 'z-old', annotations } });
    nowMs += 60_000;
    await api.post(paths.classes, { ...storageClass('m-new'), metadata: { name: 'm-new', annotations } });
    await api.post(paths.classes, { ...storageClass('n-new'), metadata: { name: 'n-new', annotations } });
    assert.equal((await api.post(paths.claims, claim('a'))).body.spec.storageClassName, 'm-new');
  });
});

describe('updating', () => {
  test('a PUT with an old resource version conflicts', async (t) => {
    const api = await startApi(t);
    const { body: created } = await api.post(paths.configMaps, configMap('a'));
    assert.equal((await api.put(`${paths.configMaps}/a`, { ...created, data: { value: 'b' } })).status, 200);
    const { status, body } = await api.put(`${paths.configMaps}/a`, { ...created, data: { value: 'c' } });
    assert.equal(status, 409);
    assert.equal(body.reason, 'Conflict');
    assert.equal(
      body.message,
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; ' +
        'please apply your changes to the latest version and try again',
    );
    assert.equal((await api.get(`${paths.configMaps}/a`)).body.data.value, 'b');
  });

  test('of twenty parallel PUTs with one resource version exactly one succeeds', async (t) => {
    const api = await startApi(t);
    const { body: created } = await api.post(paths.configMaps, configMap('a'));
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        api.put(`${paths.configMaps}/a`, { ...created, data: { value: String(index) } }),
      ),
    );
    const codes = answers.map(({ status }) => status).sort();
    assert.deepEqual(codes, [200, ...Array.from({ length: 19 }, () => 409)]);
  });

  test('a PUT of what is there already changes nothing and tells nobody', async (t) => {
    const api = await startApi(t);
    const { body: created } = await api.post(paths.claims, claim('a'));
    const watch = await api.watch(`${paths.claims}?watch=true&resourceVersion=${created.metadata.resourceVersion}`);
    const { status, body } = await api.put(`${paths.claims}/a`, created);
    assert.equal(status, 200);
    assert.equal(body.metadata.resourceVersion, created.metadata.resourceVersion);
    await api.post(paths.claims, claim('b'));
    assert.equal((await watch.event()).object.metadata.name, 'b');
  });

  test('the main path leaves the status alone, the status path the spec', async (t) => {
    const api = await startApi(t);
    const { body: created } = await api.post(paths.volumes, volume('a'));
    const main = await api.put(`${paths.volumes}/a`, {
      ...created,
      spec: { ...created.spec, storageClassName: 'fast' },
      status: { phase: 'Failed' },
    });
    assert.equal(main.body.status.phase, 'Pending');
    assert.equal(main.body.spec.storageClassName, 'fast');
    const status = await api.put(`${paths.volumes}/a/status`, {
      ...main.body,
      metadata: { ...main.body.metadata, labels: { a: 'b' } },
      spec: { ...main.body.spec, storageClassName: 'slow' },
      status: { phase: 'Available' },
    });
    assert.equal(status.status, 200);
    assert.equal(status.body.status.phase, 'Available');
    assert.equal(status.body.spec.storageClassName, 'fast');
    assert.deepEqual(status.body.metadata.labels, { a: 'b' }, 'built-in kinds store metadata on /status too');
  });

  test('the status path of a custom kind leaves metadata alone and starts no new generation', async (t) => {
    const api = await startApi(t);
    const { body: created } = await api.post(paths.snapshots, { ...snapshot('a'), status: { readyToUse: true } });
    assert.equal('status' in created, false);
    assert.equal(created.metadata.generation, 1);
    const { body } = await api.put(`${paths.snapshots}/a/status`, {
      ...created,
      metadata: { ...created.metadata, labels: { a: 'b' } },
      status: { readyToUse: true },
    });
    assert.equal(body.status.readyToUse, true);
    assert.equal('labels' in body.metadata, false);
    assert.equal(body.metadata.generation, 1);
    const next = await api.put(`${paths.snapshots}/a`, {
      ...body,
      spec: { ...body.spec, volumeSnapshotClassName: 'c' },
    });
    assert.equal(next.body.metadata.generation, 2);
    assert.equal(next.body.status.readyToUse, true);
  });

  test('a custom kind and a lease insist on a resource version', async (t) => {
    const api = await startApi(t);
    await api.post(paths.snapshots, snapshot('a'));
    assert.equal((await api.put(`${paths.snapshots}/a`, snapshot('a'))).status, 422);
    const lease = { metadata: { name: 'l' }, spec: { holderIdentity: 'me' } };
    assert.equal((await api.put(`${paths.leases}/l`, lease)).status, 201, 'a missing lease is created');
    const { status, body } = await api.put(`${paths.leases}/l`, lease);
    assert.equal(status, 422);
    assert.ok(body.message.includes('metadata.resourceVersion: Invalid value: 0x0: must be specified for an update'));
  });

  test('a PUT for an object that was made anew in the meantime conflicts', async (t) => {
    const api = await startApi(t);
    const { body: first } = await api.post(paths.configMaps, configMap('a'));
    await api.delete(`${paths.configMaps}/a`);
    await api.post(paths.configMaps, configMap('a'));
    const { status, body } = await api.put(`${paths.configMaps}/a`, {
      ...first,
      metadata: { name: 'a', uid: first.metadata.uid },
    });
    assert.equal(status, 409);
    assert.ok(body.message.includes('UID in precondition'), body.message);
  });

  const forbidden: { name: string; path: string; create: Draft; change: object; text: string }[] = [
    {
      name: "a claim's access modes",
      path: paths.claims,
      create: claim('a'),
      change: { spec: { accessModes: ['ReadOnlyMany'] } },
      text: 'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
    },
    {
      name: 'the size of a pending claim',
      path: paths.claims,
      create: claim('a'),
      change: { spec: { resources: { requests: { storage: '2Gi' } } } },
      text: 'spec is immutable',
    },
    {
      name: "a volume's handle",
      path: paths.volumes,
      create: volume('a'),
      change: { spec: { csi: { volumeHandle: 'other' } } },
      text: 'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation',
    },
    {
      name: "a class's parameters",
      path: paths.classes,
      create: storageClass('a', { parameters: { a: 'b' } }),
      change: { parameters: { a: 'c' } },
      text: 'field is immutable',
    },
    {
      name: "a class's binding mode",
      path: paths.classes,
      create: storageClass('a'),
      change: { volumeBindingMode: 'WaitForFirstConsumer' },
      text: 'field is immutable',
    },
  ];
  for (const { name, path, create, change, text } of forbidden) {
    test(`${name} cannot be changed`, async (t) => {
      const api = await startApi(t);
      const { body: created } = await api.post(path, create);
      const { status, body } = await api.patch(`${path}/a`, 'merge', change);
      assert.equal(status, 422);
      assert.ok(body.message.includes(text), body.message);
      assert.deepEqual((await api.get(`${path}/a`)).body, created);
    });
  }

  test('a bound claim grows if its class lets it', async (t) => {
    const api = await startApi(t);
    await api.post(paths.classes, storageClass('grows', { allowVolumeExpansion: true }));
    await api.post(paths.classes, storageClass('stays'));
    const bigger = { spec: { resources: { requests: { storage: '2Gi' } } } };
    const smaller = { spec: { resources: { requests: { storage: '1Gi' } } } };
    for (const name of ['grows', 'stays']) {
      await api.post(paths.claims, claim(name, { storageClassName: name }));
      const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
      assert.equal((await api.patch(`${paths.claims}/${name}/status`, 'merge', { status })).status, 200);
    }
    assert.equal((await api.patch(`${paths.claims}/grows`, 'merge', bigger)).status, 200);
    const { status, body } = await api.patch(`${paths.claims}/stays`, 'merge', bigger);
    assert.equal(status, 403);
    assert.ok(body.message.includes('only dynamically provisioned pvc can be resized'), body.message);
    assert.equal((await api.patch(`${paths.claims}/grows`, 'merge', smaller)).status, 422, 'not down to the capacity');
  });

  test('a volume name and a missing class may be filled in once', async (t) => {
    const api = await startApi(t);
    await api.post(paths.claims, claim('a'));
    const filled = { spec: { storageClassName: 'fast', volumeName: 'v' } };
    assert.equal((await api.patch(`${paths.claims}/a`, 'merge', filled)).status, 200);
    assert.equal((await api.patch(`${paths.claims}/a`, 'merge', { spec: { volumeName: 'w' } })).status, 422);
    assert.equal((await api.patch(`${paths.claims}/a`, 'merge', { spec: { storageClassName: 'slow' } })).status, 422);
  });
});

describe('patching', () => {
  test('a resource version inside a patch makes it conditional', async (t) => {
    const api = await startApi(t);
    await api.post(paths.configMaps, configMap('a'));
    const patch = { metadata: { resourceVersion: '1' }, data: { value: 'b' } };
    assert.equal((await api.patch(`${paths.configMaps}/a`, 'merge', patch)).status, 409);
    assert.equal((await api.patch(`${paths.configMaps}/a`, 'merge', { data: { value: 'b' } })).status, 200);
  });

  test('a custom kind has no strategic merge', async (t) => {
    const api = await startApi(t);
    await api.post(paths.snapshots, snapshot('a'));
    const { status, body } = await api.patch(`${paths.snapshots}/a`, 'strategic', {});
    assert.equal(status, 415);
    assert.equal(body.reason, 'UnsupportedMediaType');
  });

  test('a strategic patch adds a finalizer to the others', async (t) => {
    const api = await startApi(t);
    await api.post(paths.claims, claim('a'));
    const { body } = await api.patch(`${paths.claims}/a`, 'strategic', { metadata: { finalizers: ['x/y'] } });
    assert.deepEqual(body.metadata.finalizers, ['x/y', 'kubernetes.io/pvc-protection']);
  });

  test('a strategic patch removes only the named finalizer', async (t) => {
    const api = await startApi(t);
    await api.post(paths.claims, { ...claim('a'), metadata: { name: 'a', finalizers: ['x/y', 'x/z'] } });
    const patch = {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': ['x/y'],
        '$setElementOrder/finalizers': ['kubernetes.io/pvc-protection', 'x/z'],
      },
    };
    const { status, body } = await api.patch(`${paths.claims}/a`, 'strategic', patch);
    assert.equal(status, 200);
    assert.deepEqual(body.metadata.finalizers, ['kubernetes.io/pvc-protection', 'x/z']);
    assert.deepEqual(
      Object.keys(body.metadata).filter((key) => key.startsWith('$')),
      [],
    );
  });

  const unfit: { name: string; kind: PatchKind; patch: unknown; code: number }[] = [
    { name: 'a JSON patch that does not parse', kind: 'json', patch: '[{', code: 400 },
    { name: 'a JSON patch that is no list', kind: 'json', patch: {}, code: 400 },
    {
      name: 'a failing test',
      kind: 'json',
      patch: [
        { op: 'replace', path: '/data/value', value: 'changed' },
        { op: 'test', path: '/data/value', value: 'x' },
      ],
      code: 422,
    },
    { name: 'a missing path', kind: 'json', patch: [{ op: 'remove', path: '/data/none' }], code: 422 },
    { name: 'an unknown directive', kind: 'strategic', patch: { $what: 1 }, code: 400 },
    { name: 'an apply without a field manager', kind: 'apply', patch: configMap('a', 'b'), code: 422 },
  ];
  for (const { name, kind, patch, code } of unfit) {
    test(`${name} is refused with ${code} and changes nothing`, async (t) => {
      const api = await startApi(t);
      const { body: created } = await api.post(paths.configMaps, configMap('a'));
      assert.equal((await api.patch(`${paths.configMaps}/a`, kind, patch)).status, code);
      assert.deepEqual((await api.get(`${paths.configMaps}/a`)).body, created);
    });
  }

  test('two managers cannot apply two values, unless one of them insists', async (t) => {
    const api = await startApi(t);
    const applied = (value: string): Draft => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a' },
      data: { value },
    });
    const at = (manager: string, force = false): string =>
      `${paths.configMaps}/a?fieldManager=${manager}&force=${force}`;
    assert.equal((await api.patch(at('one'), 'apply', applied('1'))).status, 201);
    const { status, body } = await api.patch(at('two'), 'apply', applied('2'));
    assert.equal(status, 409);
    assert.equal(body.reason, 'Conflict');
    assert.equal(body.message, 'Apply failed with 1 conflict: conflict with "one" using v1: .data.value');
    assert.deepEqual(body.details.causes, [
      { reason: 'FieldManagerConflict', message: 'conflict with "one" using v1', field: '.data.value' },
    ]);
    assert.equal((await api.patch(at('two', true), 'apply', applied('2'))).body.data.value, '2');
    assert.equal((await api.patch(at('one'), 'apply', applied('1'))).status, 409);
  });

  test('an applied field goes when its only manager drops it', async (t) => {
    const api = await startApi(t);
    const apply = (data: Record<string, string>): Promise<Answer> =>
      api.patch(`${paths.configMaps}/a?fieldManager=m`, 'apply', {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'a' },
        data,
      });
    await apply({ x: '1', y: '2' });
    await api.patch(`${paths.configMaps}/a`, 'merge', { data: { z: '3' } });
    const { body } = await apply({ x: '1' });
    assert.deepEqual(body.data, { x: '1', z: '3' });
  });
});

describe('deleting', () => {
  test('a terminating object takes no new finalizers', async (t) => {
    const api = await startApi(t);
    await api.post(paths.claims, claim('a'));
    await api.delete(`${paths.claims}/a`);
    const { status, body } = await api.patch(`${paths.claims}/a`, 'strategic', { metadata: { finalizers: ['x/y'] } });
    assert.equal(status, 422);
    assert.ok(body.message.includes('no new finalizers can be added if the object is being deleted'), body.message);
  });

  test('a delete meant for another object leaves this one', async (t) => {
    const api = await startApi(t);
    await api.post(paths.configMaps, configMap('a'));
    const { status, body } = await api.delete(`${paths.configMaps}/a`, { preconditions: { uid: 'other' } });
    assert.equal(status, 409);
    assert.match(body.message, /the UID in the precondition \(other\) does not match the UID in record \(.+\)/);
    assert.equal((await api.get(`${paths.configMaps}/a`)).status, 200);
  });

  test('finalizers hold an object, and a second delete changes nothing', async (t) => {
    const api = await startApi(t);
    await api.post(paths.claims, claim('a'));
    const first = await api.delete(`${paths.claims}/a`);
    assert.equal(first.status, 200);
    assert.equal(typeof first.body.metadata.deletionTimestamp, 'string');
    const second = await api.delete(`${paths.claims}/a`);
    assert.equal(second.status, 200);
    assert.deepEqual(second.body, first.body);
  });

  test('the last finalizer takes the object with it', async (t) => {
    const api = await startApi(t);
    await api.post(paths.claims, claim('a'));
    const { body: terminating } = await api.delete(`${paths.claims}/a`);
    const watch = await api.watch(`${paths.claims}?watch=1&resourceVersion=${terminating.metadata.resourceVersion}`);
    const { status } = await api.patch(`${paths.claims}/a`, 'merge', { metadata: { finalizers: null } });
    assert.equal(status, 200);
    const event = await watch.event();
    assert.equal(event.type, 'DELETED');
    assert.ok(Number(event.object.metadata.resourceVersion) > Number(terminating.metadata.resourceVersion));
    assert.equal((await api.get(`${paths.claims}/a`)).status, 404);
  });

  test('a pod with a node gets its grace, others go at once', async (t) => {
    const api = await startApi(t);
    const pod = (name: string): Draft => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } });
    await api.post(paths.pods, pod('waiting'));
    await api.post(paths.pods, pod('running'));
    const bound = await api.post(`${paths.pods}/running/binding`, { target: { kind: 'Node', name: 'n1' } });
    assert.equal(bound.status, 201);
    assert.equal((await api.post(`${paths.pods}/running/binding`, { target: { name: 'n2' } })).status, 409);
    await api.delete(`${paths.pods}/waiting`);
    assert.equal((await api.get(`${paths.pods}/waiting`)).status, 404);
    const { body } = await api.delete(`${paths.pods}/running`);
    assert.equal(body.metadata.deletionGracePeriodSeconds, 30);
    assert.equal(body.spec.nodeName, 'n1');
    await api.delete(`${paths.pods}/running`, { gracePeriodSeconds: 0 });
    assert.equal((await api.get(`${paths.pods}/running`)).status, 404);
  });

  test('a collection is deleted by selector', async (t) => {
    const api = await startApi(t);
    await api.post(paths.configMaps, configMap('a', '1', { go: 'yes' }));
    await api.post(paths.configMaps, configMap('b', '2'));
    const { status, body } = await api.delete(`${paths.configMaps}?labelSelector=go%3Dyes`);
    assert.equal(status, 200);
    assert.equal(body.items.length, 1);
    const rest = (await api.get(paths.configMaps)).body.items.map((item) => item.metadata.name);
    assert.deepEqual(rest, ['b']);
  });

  test('a namespace takes nothing new while it goes, and goes when it is finalized', async (t) => {
    const api = await startApi(t);
    await api.post('/api/v1/namespaces', { metadata: { name: 'ns' } });
    const { body } = await api.delete('/api/v1/namespaces/ns');
    assert.equal(body.status.phase, 'Terminating');
    const refused = await api.post('/api/v1/namespaces/ns/configmaps', configMap('a'));
    assert.equal(refused.status, 403);
    assert.equal(refused.body.details.causes[0]?.reason, 'NamespaceTerminating');
    await api.put('/api/v1/namespaces/ns/finalize', { ...body, spec: { finalizers: [] } });
    assert.equal((await api.get('/api/v1/namespaces/ns')).status, 404);
  });
});
