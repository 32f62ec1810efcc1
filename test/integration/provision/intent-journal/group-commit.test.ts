import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, recordOf, Rig, uidOf } from './rig.ts';

const numbers = (count: number, from = 1): number[] => Array.from({ length: count }, (_, i) => from + i);

function updates(rig: Rig): number {
  return rig.server.requestLog.entries({ verb: 'update', resource: 'leases' }).length;
}

test('what arrives while a write is under way goes with the next one', async () => {
  await using rig = await Rig.start();
  const { journal } = await rig.open();
  const before = updates(rig);
  rig.fault({ match: { verb: 'update' }, action: { type: 'delay', ms: 100 }, times: 1 });
  const first = journal.put(recordOf(1), never);
  await new Promise<void>((resolve) => queueMicrotask(resolve));
  await Promise.all([first, ...numbers(4, 2).map((n) => journal.put(recordOf(n), never))]);
  assert.equal(updates(rig) - before, 2);
});

test('a lone record is written at once, without waiting for others', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const { journal } = await rig.open({ clock });
  assert.equal(await journal.put(recordOf(1), never), 'durable'); // no time passes
  assert.equal(clock.monotonicMs(), 0);
});

test('with 10,000 records open at most 16 KiB and a fifth of a request are spent for each claim, in small shards', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 5 });
  const { journal, written } = await rig.open({ clock });
  const all = Promise.all(numbers(10_000).map((n) => journal.put(recordOf(n), never)));
  await passTime(clock, all);
  assert.deepEqual(new Set(await all), new Set(['durable']));
  const [requests, writes] = [updates(rig), written.length];
  for (let round = 0; round < 40; round++) {
    const group = numbers(6, 10_001 + 6 * round).map((n) => journal.put(recordOf(n), never));
    await passTime(clock, Promise.all(group));
    for (const n of numbers(6, 1 + 6 * round)) journal.remove(uidOf(n));
    await clock.advance(40);
  }
  const bytes = written.slice(writes).reduce((sum, each) => sum + each, 0);
  assert.ok(bytes / 240 <= 16 * 1024, `${bytes / 240} bytes for each claim`);
  assert.ok((updates(rig) - requests) / 240 <= 0.2, `${(updates(rig) - requests) / 240} requests for each claim`);
  for (const shard of rig.shards) {
    const annotations = Object.entries(shard.metadata.annotations ?? {});
    assert.ok(annotations.reduce((sum, [key, text]) => sum + key.length + text.length, 0) <= 256 * 1024);
  }
  await journal.flush(never);
  assert.deepEqual(rig.stored, numbers(10_000, 241).map(uidOf));
});

test('closed records are removed after a second of quiet', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const { journal } = await rig.open({ clock });
  for (const n of numbers(3)) await journal.put(recordOf(n), never);
  const before = updates(rig);
  for (const n of numbers(2)) journal.remove(uidOf(n));
  await clock.advance(999);
  assert.equal(updates(rig), before);
  await clock.advance(2);
  assert.deepEqual(rig.stored, [uidOf(3)]);
  assert.equal(updates(rig), before + 1);
});

/** Lets time pass in short steps, so that requests keep up with it, until the promise is resolved. */
async function passTime(clock: ManualClock, promise: Promise<unknown>): Promise<void> {
  const state = { isDone: false };
  void promise.then(() => (state.isDone = true));
  while (!state.isDone) await clock.advance(40);
}

test('the versions of a thousand records are renewed with one write of each shard, and the next process finds them', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 5 });
  const process = await rig.open({ clock });
  const { journal } = process;
  const all = numbers(1000);
  await passTime(clock, Promise.all(all.map((n) => journal.put({ ...recordOf(n), since: '1' }, never))));
  await clock.advance(2000);
  const before = updates(rig);
  for (const n of [...all, 1001]) journal.renewSince(uidOf(n), '2');
  await clock.advance(2000);
  assert.ok(
    updates(rig) - before <= rig.shards.length,
    `${updates(rig) - before} writes of ${rig.shards.length} shards`,
  );
  await process.stop();
  const next = await rig.open({ clock });
  assert.deepEqual([...new Set([...next.found.values()].map(({ record }) => record.since))], ['2']);
  assert.equal(next.found.size, 1000);
});
