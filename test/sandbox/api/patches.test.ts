import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyConfiguration } from '../../../sandbox/api/field-ownership.ts';
import type { JsonObject } from '../../../sandbox/api/json.ts';
import { jsonPatch, mergePatch } from '../../../sandbox/api/json-patch.ts';
import { strategicMerge } from '../../../sandbox/api/strategic-merge.ts';

describe('strategicMerge', () => {
  const cases: { name: string; target: JsonObject; patch: JsonObject; kind?: string; want: JsonObject }[] = [
    { name: 'maps merge', target: { a: { b: 1, c: 2 } }, patch: { a: { b: 3 } }, want: { a: { b: 3, c: 2 } } },
    { name: 'null removes', target: { a: 1, b: 2 }, patch: { a: null }, want: { b: 2 } },
    {
      name: 'lists without a key are replaced',
      target: { spec: { accessModes: ['a', 'b'] } },
      patch: { spec: { accessModes: ['c'] } },
      want: { spec: { accessModes: ['c'] } },
    },
    {
      name: 'keyed lists merge by key and take new elements at the end',
      target: {
        containers: [
          { name: 'a', image: '1' },
          { name: 'b', image: '1' },
        ],
      },
      patch: {
        containers: [
          { name: 'b', image: '2' },
          { name: 'c', image: '3' },
        ],
      },
      want: {
        containers: [
          { name: 'a', image: '1' },
          { name: 'b', image: '2' },
          { name: 'c', image: '3' },
        ],
      },
    },
    {
      name: 'an element is deleted by directive',
      target: { containers: [{ name: 'a' }, { name: 'b' }] },
      patch: { containers: [{ name: 'a', $patch: 'delete' }] },
      want: { containers: [{ name: 'b' }] },
    },
    {
      name: 'a keyed list is replaced by directive',
      target: { containers: [{ name: 'a' }, { name: 'b' }] },
      patch: { containers: [{ $patch: 'replace' }, { name: 'c' }] },
      want: { containers: [{ name: 'c' }] },
    },
    {
      name: 'a map is replaced by directive',
      target: { a: { b: 1 } },
      patch: { a: { $patch: 'replace', c: 2 } },
      want: { a: { c: 2 } },
    },
    { name: 'a map is deleted by directive', target: { a: { b: 1 } }, patch: { a: { $patch: 'delete' } }, want: {} },
    {
      name: 'finalizers are a set',
      target: { metadata: { finalizers: ['a', 'b'] } },
      patch: { metadata: { finalizers: ['b', 'c'] } },
      want: { metadata: { finalizers: ['a', 'b', 'c'] } },
    },
    {
      name: 'primitives are deleted by directive',
      target: { metadata: { finalizers: ['a', 'b'] } },
      patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } },
      want: { metadata: { finalizers: ['b'] } },
    },
    {
      name: 'an order directive sorts and is not stored',
      target: { containers: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] },
      patch: { '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }], containers: [{ name: 'a', image: '1' }] },
      want: { containers: [{ name: 'b' }, { name: 'c' }, { name: 'a', image: '1' }] },
    },
    {
      name: 'only retained keys stay',
      target: { volumes: [{ name: 'v', emptyDir: {} }] },
      patch: { volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/' } }] },
      want: { volumes: [{ name: 'v', hostPath: { path: '/' } }] },
    },
    {
      name: 'ports of a container merge by containerPort, those of a service by port',
      kind: 'Service',
      target: { spec: { ports: [{ port: 80, name: 'a' }] } },
      patch: { spec: { ports: [{ port: 80, name: 'b' }, { port: 81 }] } },
      want: { spec: { ports: [{ port: 80, name: 'b' }, { port: 81 }] } },
    },
    {
      name: 'drivers of a CSINode merge by name, new ones first',
      kind: 'CSINode',
      target: { spec: { drivers: [{ name: 'a', nodeID: 'n' }] } },
      patch: { spec: { drivers: [{ name: 'b', nodeID: 'n' }] } },
      want: {
        spec: {
          drivers: [
            { name: 'b', nodeID: 'n' },
            { name: 'a', nodeID: 'n' },
          ],
        },
      },
    },
    {
      name: 'nulls in something new are not stored',
      target: {},
      patch: { spec: { a: null, b: 1 } },
      want: { spec: { b: 1 } },
    },
  ];
  for (const { name, target, patch, kind = 'Pod', want } of cases) {
    test(name, () => {
      const before = structuredClone({ target, patch });
      assert.deepEqual(strategicMerge(target, patch, kind), want);
      assert.deepEqual({ target, patch }, before, 'the arguments stay as they are');
    });
  }

  for (const patch of [{ $what: 1 }, { $patch: 'shred' }, { containers: [{ image: '1' }] }]) {
    test(`refuses ${JSON.stringify(patch)}`, () => {
      assert.throws(() => strategicMerge({ containers: [] }, patch, 'Pod'), { reason: 'BadRequest' });
    });
  }
});

describe('mergePatch', () => {
  const cases: { target: unknown; patch: unknown; want: unknown }[] = [
    { target: { a: 'b' }, patch: { a: 'c' }, want: { a: 'c' } },
    { target: { a: 'b', b: 'c' }, patch: { a: null }, want: { b: 'c' } },
    { target: { a: ['b'] }, patch: { a: ['c', 'd'] }, want: { a: ['c', 'd'] } },
    { target: { a: 'b' }, patch: { a: { c: null, d: 1 } }, want: { a: { d: 1 } } },
    { target: {}, patch: { a: { b: { c: null } } }, want: { a: { b: {} } } },
    { target: { a: 1 }, patch: 'text', want: 'text' },
  ];
  for (const { target, patch, want } of cases) {
    test(`${JSON.stringify(target)} with ${JSON.stringify(patch)} (RFC 7386)`, () => {
      assert.deepEqual(mergePatch(target, patch), want);
    });
  }

  test('a field called __proto__ is a field like any other', () => {
    const patched = mergePatch({}, JSON.parse('{"__proto__": {"polluted": true}}')) as object;
    assert.deepEqual(Object.keys(patched), ['__proto__']);
    assert.equal(Reflect.get({}, 'polluted'), undefined);
  });
});

describe('jsonPatch', () => {
  const cases: { name: string; target: unknown; patch: unknown; want: unknown }[] = [
    { name: 'add', target: { a: 1 }, patch: [{ op: 'add', path: '/b', value: 2 }], want: { a: 1, b: 2 } },
    {
      name: 'add into a list',
      target: { a: [1, 3] },
      patch: [{ op: 'add', path: '/a/1', value: 2 }],
      want: { a: [1, 2, 3] },
    },
    { name: 'add at the end', target: { a: [1] }, patch: [{ op: 'add', path: '/a/-', value: 2 }], want: { a: [1, 2] } },
    { name: 'remove', target: { a: 1, b: [1, 2] }, patch: [{ op: 'remove', path: '/b/0' }], want: { a: 1, b: [2] } },
    { name: 'replace', target: { a: 1 }, patch: [{ op: 'replace', path: '/a', value: 2 }], want: { a: 2 } },
    { name: 'move', target: { a: 1 }, patch: [{ op: 'move', from: '/a', path: '/b' }], want: { b: 1 } },
    {
      name: 'copy',
      target: { a: { x: 1 } },
      patch: [{ op: 'copy', from: '/a', path: '/b' }],
      want: { a: { x: 1 }, b: { x: 1 } },
    },
    {
      name: 'test',
      target: { a: { x: 1 } },
      patch: [{ op: 'test', path: '/a', value: { x: 1 } }],
      want: { a: { x: 1 } },
    },
    { name: 'escapes', target: { 'a/b~c': 1 }, patch: [{ op: 'remove', path: '/a~1b~0c' }], want: {} },
    { name: 'the whole', target: { a: 1 }, patch: [{ op: 'replace', path: '', value: { b: 1 } }], want: { b: 1 } },
  ];
  for (const { name, target, patch, want } of cases) {
    test(`${name} (RFC 6902)`, () => assert.deepEqual(jsonPatch(target, patch), want));
  }

  const failures = [
    { patch: [{ op: 'remove', path: '/none' }], reason: 'Invalid' },
    { patch: [{ op: 'replace', path: '/none', value: 1 }], reason: 'Invalid' },
    { patch: [{ op: 'add', path: '/list/5', value: 1 }], reason: 'Invalid' },
    { patch: [{ op: 'add', path: '/none/deep', value: 1 }], reason: 'Invalid' },
    { patch: [{ op: 'test', path: '/a', value: 2 }], reason: 'Invalid' },
    { patch: [{ op: 'shred', path: '/a' }], reason: 'Invalid' },
    { patch: [{ op: 'add' }], reason: 'BadRequest' },
    { patch: { op: 'add' }, reason: 'BadRequest' },
    {
      patch: Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: 1 })),
      reason: 'RequestEntityTooLarge',
    },
  ];
  for (const { patch, reason } of failures) {
    test(`${JSON.stringify(patch).slice(0, 60)} fails as ${reason}`, () => {
      assert.throws(() => jsonPatch({ a: 1, list: [] }, patch), { reason });
    });
  }
});

describe('applyConfiguration', () => {
  const apply = (
    live: JsonObject,
    config: JsonObject,
    manager = 'm',
    owners: Parameters<typeof applyConfiguration>[0]['owners'] = new Map(),
    force = false,
  ) => applyConfiguration({ kind: 'Pod', apiVersion: 'v1', live, config, manager, force, owners });

  test('list elements a manager drops go, those of others stay', () => {
    const container = (name: string): JsonObject => ({ name, image: 'i' });
    const first = apply({}, { spec: { containers: [container('a'), container('b')] } });
    const live = { ...first.object, spec: { containers: [container('a'), container('b'), container('other')] } };
    const second = apply(live, { spec: { containers: [container('a')] } }, 'm', first.owners);
    assert.deepEqual(second.object['spec'], { containers: [container('a'), container('other')] });
  });

  test('a field two managers share stays until both drop it', () => {
    const one = apply({}, { data: { x: '1' } }, 'one');
    const two = apply(one.object, { data: { x: '1' } }, 'two', one.owners);
    const dropped = apply(two.object, { data: {} }, 'one', two.owners);
    assert.deepEqual(dropped.object['data'], { x: '1' });
    const gone = apply(dropped.object, { data: {} }, 'two', dropped.owners);
    assert.deepEqual(gone.object['data'], {});
  });

  test('finalizers are owned one by one', () => {
    const first = apply({ metadata: { finalizers: ['theirs/x'] } }, { metadata: { finalizers: ['mine/x'] } });
    assert.deepEqual(first.object['metadata'], { finalizers: ['theirs/x', 'mine/x'] });
    const second = apply(first.object, { metadata: { finalizers: [] } }, 'm', first.owners);
    assert.deepEqual(second.object['metadata'], { finalizers: ['theirs/x'] });
  });

  test('two conflicts are told together', () => {
    const one = apply({}, { data: { x: '1', y: '1' } }, 'one');
    assert.throws(() => apply(one.object, { data: { x: '2', y: '2' } }, 'two', one.owners), {
      reason: 'Conflict',
      message: /^Apply failed with 2 conflicts: conflict with "one" using v1: \.data\.x\n/,
    });
  });
});
