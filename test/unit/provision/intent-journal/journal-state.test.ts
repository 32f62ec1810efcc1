import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { JournalEntry } from '../../../../src/provision/intent-journal/journal-entry.ts';
import { loneBytes, maxShardBytes, placeGroup } from '../../../../src/provision/intent-journal/journal-state.ts';
import { ShardState } from '../../../../src/provision/intent-journal/shard.ts';

function entry(uid: string, bytes: number, shared: Record<string, number> = {}): JournalEntry {
  const texts = Object.entries(shared).map(([key, length]) => [key, 'x'.repeat(length)] as const);
  const rest = { phase: 'create', provisioner: 'drv', writer: 'w', renewedAt: '', since: '', reportOnly: '' } as const;
  return { uid, text: '', shared: new Map(texts), bytes, ...rest };
}

function shard(index: number, bytes: number[], { busy = false } = {}): ShardState {
  const made = new ShardState(index);
  bytes.forEach((each, i) => made.want(`${index}-${i}`, entry(`${index}-${i}`, each), 0));
  if (busy) made.acquire();
  return made;
}

const anyShard = { inOrder: false };

describe('the shard of a group of new records', () => {
  test('it is the smallest, counting what is removed as gone', () => {
    const shards = [shard(0, [3000, 1500]), shard(1, [2000, 2000])];
    assert.deepEqual(placeGroup([entry('a', 1000)], shards, anyShard), { shard: shards[1], count: 1 });
    shards[0]?.want('0-0', undefined, 0);
    assert.deepEqual(placeGroup([entry('a', 1000)], shards, anyShard), { shard: shards[0], count: 1 });
  });

  test('a new one is needed when all would grow beyond 8 KiB for each record of the group', () => {
    const shards = [shard(0, [5000])];
    assert.equal(placeGroup([entry('a', 1500)], shards, anyShard), 'grow');
    assert.deepEqual(placeGroup([entry('a', 1500), entry('b', 1500)], shards, anyShard), {
      shard: shards[0],
      count: 2,
    });
  });

  test('it is the first with room where others write too, up to 64 KiB, also while it is being written', () => {
    const inOrder = { inOrder: true };
    const shards = [shard(0, [50_000]), shard(1, [1000])];
    assert.deepEqual(placeGroup([entry('a', 1000)], shards, inOrder), { shard: shards[0], count: 1 });
    assert.deepEqual(placeGroup([entry('a', 20_000)], shards, inOrder), { shard: shards[1], count: 1 });
    assert.equal(
      placeGroup([entry('a', 1000)], [shard(0, [50_000], { busy: true }), shard(1, [1000])], inOrder),
      'wait',
    );
    assert.equal(placeGroup([entry('a', 20_000)], [shard(0, [50_000])], inOrder), 'grow');
  });

  test('a shard that is being written is waited for rather than a new one begun', () => {
    assert.equal(placeGroup([entry('a', 1000)], [shard(0, [1000], { busy: true })], anyShard), 'wait');
    assert.equal(placeGroup([entry('a', 1000)], [shard(0, [9000], { busy: true })], anyShard), 'grow');
  });

  test('shared values count only in the shards that do not have them', () => {
    const big = { 'shared-1': 90_000 };
    const shards = [shard(0, [20_000]), shard(1, [])];
    shards[1]?.want('x', entry('x', 5000, big), 0);
    const place = placeGroup([entry('a', 1000, big)], shards, anyShard);
    assert.equal(typeof place === 'object' && place.shard.index, 1);
  });

  test('no group makes a shard larger than 200 KiB, or larger than 8 KiB for each of its records without need', () => {
    const sizes = fc.array(fc.integer({ min: 300, max: 150_000 }), { minLength: 1, maxLength: 60 });
    const stored = fc.array(fc.array(fc.integer({ min: 300, max: 20_000 }), { maxLength: 9 }), { maxLength: 6 });
    fc.assert(
      fc.property(sizes, stored, (group, others) => {
        const shards = [...others.map((bytes, i) => shard(i, bytes)), new ShardState(99)];
        const entries = group.map((bytes, i) => entry(`new-${i}`, bytes, { 'shared-1': 500 }));
        const place = placeGroup(entries, shards, anyShard);
        assert.ok(typeof place === 'object', 'there is an empty one');
        assert.ok(place.count >= 1 && place.count <= entries.length);
        const placed = entries.slice(0, place.count);
        const wasEmpty = place.shard.wanted.size === 0;
        for (const each of placed) place.shard.want(each.uid, each, 0);
        assert.ok(place.shard.bytes <= maxShardBytes);
        const alone = placed.reduce((sum, { bytes }) => sum + bytes, 3000);
        assert.ok(wasEmpty || place.shard.bytes <= Math.max(8192 * place.count, 2 * alone));
      }),
    );
  });
});

test('the size of a record counts the values that it shares', () => {
  assert.equal(loneBytes(entry('a', 100, { k: 1000 })) - loneBytes(entry('a', 100)), 1001);
});
