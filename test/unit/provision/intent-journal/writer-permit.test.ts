import assert from 'node:assert/strict';
import { test } from 'node:test';
import { momentOf } from '../../../../src/base/permit.ts';
import { entryOf } from '../../../../src/provision/intent-journal/journal-entry.ts';
import { PlanWriter } from '../../../../src/provision/intent-journal/plan-text.ts';
import { Shard } from '../../../../src/provision/intent-journal/shard.ts';
import { ShardSet } from '../../../../src/provision/intent-journal/shard-set.ts';
import { WriterPermit } from '../../../../src/provision/intent-journal/writer-permit.ts';
import { recordOf } from '../../../integration/provision/intent-journal/rig.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

/** Shards that each hold a record, the first two of this process, and its permit. */
function scene() {
  const clock = new ManualClock({ turns: 1 });
  const shards = new ShardSet();
  const [first, second, other] = ['me', 'me', 'another'].map((writer, number) => {
    const shard = new Shard(number);
    const entry = entryOf(recordOf(number), { writer, renewedAt: '', reportOnly: '', plans: new PlanWriter() });
    shard.want(entry.uid, entry, 0);
    shards.byNumber.set(number, shard);
    return shard;
  }) as [Shard, Shard, Shard];
  const permit = new WriterPermit({ clock, shards, me: 'me', isRefused: () => false, wake: () => undefined });
  return { clock, permit, first, second, other };
}

test('after a silence the permit is valid once all shards with own records are written, also by writes for something else', async () => {
  const { clock, permit, first, second, other } = scene();
  permit.wrote(first, momentOf(clock));
  assert.equal(permit.isValid, true);
  await clock.advance(60_000);
  assert.equal(permit.isValid, false);
  permit.wrote(other, momentOf(clock));
  assert.equal(permit.isValid, false);
  permit.wrote(first, momentOf(clock));
  assert.equal(permit.isValid, false);
  permit.wrote(second, momentOf(clock));
  assert.equal(permit.isValid, true);
});

test('a write that was sent before a silence shows nothing of what came after, however late its answer', async () => {
  const { clock, permit, first, second } = scene();
  permit.wrote(first, momentOf(clock));
  const before = momentOf(clock);
  await clock.advance(60_000);
  permit.wrote(first, momentOf(clock));
  permit.wrote(second, before);
  assert.equal(permit.isValid, false);
  permit.wrote(second, momentOf(clock));
  assert.equal(permit.isValid, true);
});
