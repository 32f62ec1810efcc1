import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { silentLogger } from '../../../../src/base/logger.ts';
import { PartitionedMap, SharedValues, Store } from '../../../../src/kube/cache/store.ts';
import type { KubeObject } from '../../../../src/kube/kube-object.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';

interface Thing extends KubeObject {
  tags: string[];
}

function thing(name: string, tags: string[], namespace?: string): Thing {
  return { metadata: { name, ...(namespace !== undefined && { namespace }) }, tags };
}

function names(found: Thing[]): string[] {
  return found.map(({ metadata }) => metadata.name).sort();
}

const byTag = { tag: (object: Thing): string[] => object.tags };

describe('Store', () => {
  test('keeps objects by namespace and name, or by name alone', () => {
    const store = new Store<Thing>({ logger: silentLogger });
    store.set(thing('a', [], 'ns'));
    store.set(thing('a', []));
    assert.deepEqual([...store.keys()].toSorted(), ['a', 'ns/a']);
    assert.equal(store.get('ns/a')?.metadata.namespace, 'ns');
    assert.equal(store.size, 2);
  });

  for (const namespace of [undefined, '', 'ns', 'a-namespace-with-a-long-name', 'ñ']) {
    test(`finds objects by key in namespace ${namespace ?? 'undefined'}`, () => {
      const store = new Store<Thing>({ logger: silentLogger });
      const objects = Array.from({ length: 100 }, (_, index) => thing(`thing-${index}`, [], namespace));
      for (const object of objects) store.set(object);
      const before = namespace === undefined || namespace === '' ? '' : `${namespace}/`;
      for (const object of objects) assert.equal(store.get(`${before}${object.metadata.name}`), object);
      for (const object of objects) assert.equal(store.delete(`${before}${object.metadata.name}`), object);
      assert.equal(store.size, 0);
    });
  }

  test('gives back what was replaced or removed', () => {
    const store = new Store<Thing>({ logger: silentLogger });
    const [old, fresh] = [thing('a', ['1']), thing('a', ['2'])];
    assert.equal(store.set(old), undefined);
    assert.equal(store.set(fresh), old);
    assert.deepEqual([...store.list()], [fresh]);
    assert.equal(store.delete('a'), fresh);
    assert.equal(store.delete('a'), undefined);
    assert.equal(store.size, 0);
  });

  test('indexes follow every write', () => {
    const store = new Store<Thing>({ logger: silentLogger, indexers: byTag });
    store.set(thing('a', ['x', 'y']));
    store.set(thing('b', ['x', 'x']));
    store.set(thing('c', []));
    assert.deepEqual(names(store.byIndex('tag', 'x')), ['a', 'b']);
    store.set(thing('a', ['z']));
    assert.deepEqual(names(store.byIndex('tag', 'x')), ['b']);
    assert.deepEqual(names(store.byIndex('tag', 'y')), []);
    assert.deepEqual(names(store.byIndex('tag', 'z')), ['a']);
    store.delete('b');
    assert.deepEqual(names(store.byIndex('tag', 'x')), []);
    store.set(thing('d', ['x']));
    assert.deepEqual(names(store.byIndex('tag', 'x')), ['d']);
  });

  test('numbers index as texts do', () => {
    const store = new Store<Thing>({
      logger: silentLogger,
      indexers: { size: ({ tags }) => tags.map((tag) => tag.length) },
    });
    store.set(thing('a', ['x', 'xyz']));
    store.set(thing('b', ['y']));
    assert.deepEqual(names(store.byIndex('size', 1)), ['a', 'b']);
    assert.deepEqual(names(store.byIndex('size', 3)), ['a']);
    assert.deepEqual(names(store.byIndex('size', '3')), []);
    store.delete('a');
    assert.deepEqual(names(store.byIndex('size', 1)), ['b']);
    assert.deepEqual([store.hasIndex('size'), store.hasIndex('tag')], [true, false]);
  });

  test('an index added later finds what is there; its name can be taken once', () => {
    const store = new Store<Thing>({ logger: silentLogger });
    store.set(thing('a', ['x']));
    assert.throws(() => store.byIndex('tag', 'x'), /no index "tag"/);
    store.addIndex('tag', byTag.tag);
    assert.deepEqual(names(store.byIndex('tag', 'x')), ['a']);
    assert.throws(() => store.addIndex('tag', byTag.tag), /exists already/);
  });

  test('an index function that fails on one object costs only its entries', () => {
    const lines: LogLine[] = [];
    const store = new Store<Thing>({
      logger: recordedLogger(lines),
      indexers: {
        tag: (object) => {
          if (object.tags.includes('bad')) throw new Error('cannot index');
          return object.tags;
        },
      },
    });
    store.set(thing('a', ['x']));
    store.set(thing('b', ['bad', 'x']));
    assert.deepEqual(names(store.byIndex('tag', 'x')), ['a']);
    assert.equal(store.get('b')?.metadata.name, 'b');
    store.set(thing('b', ['x']));
    assert.deepEqual(names(store.byIndex('tag', 'x')), ['a', 'b']);
    assert.ok(lines.length > 0 && lines.every(({ level }) => level === 'error'));
  });

  test('with freeze a write into a kept object throws', () => {
    const store = new Store<Thing>({ logger: silentLogger, freeze: true });
    store.set(thing('a', ['x']));
    const kept = store.get('a');
    assert.throws(() => kept?.tags.push('y'), TypeError);
    assert.deepEqual(store.get('a')?.tags, ['x']);
  });
});

describe('SharedValues', () => {
  test('equal values become one, frozen; the original stays as it was', () => {
    const shared = new SharedValues();
    const [first, second] = [{ requests: { storage: '1Gi' } }, { requests: { storage: '1Gi' } }];
    assert.equal(shared.value(first), shared.value(second));
    assert.throws(() => (shared.value(first).requests.storage = '2Gi'), TypeError);
    first.requests.storage = '3Gi';
    assert.equal(shared.value(second).requests.storage, '1Gi');
    assert.equal(shared.value<object | undefined>(undefined), undefined);
    assert.equal(shared.string('ns'), 'ns');
  });

  test('keeps no more values than its limit, and passes further ones through', () => {
    const shared = new SharedValues(1);
    assert.equal(shared.value({ a: 1 }), shared.value({ a: 1 }));
    const [b, again] = [shared.value({ b: 1 }), shared.value({ b: 1 })];
    assert.deepEqual(b, again);
    assert.notEqual(b, again);
  });
});

const sorted = <T>(values: Iterable<T>): string[] => Array.from(values, (value) => JSON.stringify(value)).toSorted();

/** The number of keys in each partition. Keys were added in ascending order, and a partition keeps that order, so each descent begins the next one. */
function ascendingRuns(numbers: Iterable<number>): number[] {
  const runs: number[] = [];
  let before = Infinity;
  for (const number of numbers) {
    if (number < before) runs.push(0);
    runs.push((runs.pop() ?? 0) + 1);
    before = number;
  }
  return runs;
}

describe('PartitionedMap', () => {
  test('holds the same entries as a Map after any series of sets and deletes', () => {
    const key = fc.oneof(fc.string({ maxLength: 3 }), fc.integer({ min: -5, max: 5 }), fc.integer());
    const step = fc.record({ key, value: fc.option(fc.integer(), { nil: undefined }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const [partitioned, map] = [new PartitionedMap<string | number, number>(), new Map<string | number, number>()];
        for (const { key, value } of steps) {
          if (value === undefined) assert.equal(partitioned.delete(key), map.delete(key));
          else {
            partitioned.set(key, value);
            map.set(key, value);
          }
          assert.equal(partitioned.get(key), map.get(key));
        }
        assert.equal(partitioned.size, map.size);
        assert.deepEqual(sorted(partitioned), sorted(map));
        assert.deepEqual(sorted(partitioned.keys()), sorted(map.keys()));
        assert.deepEqual(sorted(partitioned.values()), sorted(map.values()));
        assert.deepEqual(sorted(partitioned.toArray()), sorted(map.values()));
      }),
    );
  });

  test('visits each key that is present throughout exactly once, while others are added and deleted', () => {
    const map = new PartitionedMap<number, number>();
    for (let key = 0; key < 1000; key++) map.set(key, key);
    const visited: number[] = [];
    for (const key of map.keys()) {
      visited.push(key);
      if (key >= 1000) continue;
      if (key % 2 === 1) map.delete(key);
      map.set(1000 + key, key);
    }
    const evens = visited.filter((key) => key < 1000 && key % 2 === 0);
    assert.deepEqual(
      evens.toSorted((a, b) => a - b),
      Array.from({ length: 500 }, (_, index) => 2 * index),
    );
  });

  for (const [what, keyOf] of Object.entries({
    'names with a random end': (index: number) => `pvc-${(index * 2654435761) % 4294967291}`,
    'names with a number in the middle': (index: number) => `team-${index}/data`,
    'small numbers': (index: number) => index,
    'multiples of 2^16': (index: number) => index * 65536,
    'numbers of 32 bits': (index: number) => Math.imul(index, 0x9e3779b1),
  })) {
    test(`spreads keys evenly: ${what}`, () => {
      const map = new PartitionedMap<string | number, number>();
      for (let index = 0; index < 32_000; index++) map.set(keyOf(index), index);
      const parts = ascendingRuns(map.values());
      assert.equal(parts.length, 16);
      assert.ok(Math.max(...parts) < 3000, parts.join());
    });
  }
});
