import assert from 'node:assert/strict';
import { test } from 'node:test';
import { momentOf } from '../../../../src/base/permit.ts';
import { entryOf } from '../../../../src/provision/intent-journal/journal-entry.ts';
import { PlanWriter } from '../../../../src/provision/intent-journal/plan-text.ts';
import { JournalState } from '../../../../src/provision/intent-journal/journal-state.ts';
import type { Shard } from '../../../../src/provision/intent-journal/shard.ts';
import { OwnWrites } from '../../../../src/provision/intent-journal/signs-of-life.ts';
import { recordOf } from '../../../integration/provision/intent-journal/rig.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

/** Shards that each hold a record, the first two of this process, and what its writes show. */
function scene() {
  const clock = new ManualClock({ turns: 1 });
  const state = new JournalState();
  const [first, second, other] = ['me', 'me', 'another'].map((writer, number) => {
    const shard = state.add(number);
    const entry = entryOf(recordOf(number), { writer, renewedAt: '', reportOnly: '', plans: new PlanWriter() });
    shard.want(entry.uid, entry, 0);
    return shard;
  }) as [Shard, Shard, Shard];
  const ownWrites = new OwnWrites({ state, me: 'me' });
  const isFresh = (): boolean => ownWrites.isFresh(momentOf(clock));
  return { clock, ownWrites, isFresh, first, second, other };
}

test('after a silence the permit is valid once all shards with own records are written, also by writes for something else', async () => {
  const { clock, ownWrites, isFresh, first, second, other } = scene();
  ownWrites.add(first, momentOf(clock));
  assert.equal(isFresh(), true);
  await clock.advance(60_000);
  assert.equal(isFresh(), false);
  ownWrites.add(other, momentOf(clock));
  assert.equal(isFresh(), false);
  ownWrites.add(first, momentOf(clock));
  assert.equal(isFresh(), false);
  ownWrites.add(second, momentOf(clock));
  assert.equal(isFresh(), true);
});

test('a write that was sent before a silence shows nothing of what came after, however late its answer', async () => {
  const { clock, ownWrites, isFresh, first, second } = scene();
  ownWrites.add(first, momentOf(clock));
  const before = momentOf(clock);
  await clock.advance(60_000);
  ownWrites.add(first, momentOf(clock));
  ownWrites.add(second, before);
  assert.equal(isFresh(), false);
  ownWrites.add(second, momentOf(clock));
  assert.equal(isFresh(), true);
});
