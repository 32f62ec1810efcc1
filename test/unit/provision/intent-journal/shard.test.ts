import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { entryOf } from '../../../../src/provision/intent-journal/journal-entry.ts';
import { PlanWriter } from '../../../../src/provision/intent-journal/plan-text.ts';
import { ShardState } from '../../../../src/provision/intent-journal/shard.ts';
import type { ShardHeader } from '../../../../src/provision/intent-journal/shard-contents.ts';

const header: ShardHeader = { format: 2, uid: 'u', writer: 'w', sequence: 1, renewedAt: '2026-01-01T00:00:00Z' };
const plans = new PlanWriter();

function entry(uid: string, value: number) {
  const record = {
    claim: { namespace: 'ns', name: uid, uid },
    volume: { name: uid, claimRef: {}, className: 'c', provisioner: 'd', defaults: {} },
    plan: { parameters: { value: String(value).repeat(300) } },
    phase: 'create' as const,
    createdAt: '',
  };
  return entryOf(record, { writer: 'w', renewedAt: '', reportOnly: '', plans });
}

test('after any changes and failed writes the last write holds what is wanted, and no shared value too many or too few', () => {
  const uid = fc.constantFrom('aa', 'bb', 'cc', 'dd');
  const change = fc.record({ uid, value: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }) });
  const step = fc.oneof(change, fc.constantFrom('write' as const, 'fail' as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const shard = new ShardState(0);
      const model = new Map<string, number>();
      for (const each of steps) {
        if (typeof each === 'object') {
          if (each.value === undefined) model.delete(each.uid);
          else model.set(each.uid, each.value);
          shard.want(each.uid, each.value === undefined ? undefined : entry(each.uid, each.value), 0);
          continue;
        }
        const write = shard.begin(1, header);
        if (each === 'fail') shard.undo(write);
        else shard.complete(write);
      }
      const write = shard.begin(2, header);
      shard.complete(write);
      const keys = Object.keys(write.entries).filter((key) => key !== 'shard' && !key.startsWith('shared-'));
      assert.deepEqual(keys.sort(), [...model.keys()].sort());
      assert.deepEqual([...shard.stored.keys()].sort(), keys);
      const used = [...shard.wanted.values()].flatMap(({ shared }) => [...shared.keys()]);
      const stored = Object.keys(write.entries).filter((key) => key.startsWith('shared-'));
      assert.deepEqual(stored.sort(), [...new Set(used)].sort());
      const size = Object.entries(write.entries).reduce((sum, [key, text]) => sum + key.length + text.length, 0);
      assert.equal(shard.bytes, size - write.entries['shard']!.length - 'shard'.length + 2048);
      assert.ok(!shard.isDirty);
    }),
  );
});
