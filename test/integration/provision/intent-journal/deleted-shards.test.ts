/** Somebody deletes shards of the journal, such as a program that takes them for expired Leases. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { keysOf, leaseResource, never, recordOf, Rig, uidOf } from './rig.ts';

/** A record that leaves room for only one more of its size in a shard. */
const large = (n: number) => recordOf(n, { plan: { padding: `${n}-`.repeat(30_000) } });

function deleteShard(rig: Rig, n: number): void {
  rig.api.delete(leaseResource, { namespace: 'ns', name: `lock-journal-${n}` });
}

/** Numbers of the claims whose records are in a shard. */
function claimsIn(rig: Rig, n: number): number[] {
  const shard = rig.shard(n);
  const keys = shard === undefined ? [] : keysOf(shard);
  return keys.filter((key) => key !== 'shard' && !key.startsWith('shared-')).map((key) => Number(key.slice(-12)));
}

test('the records of the other shards are found when the first one was deleted while nobody ran', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  for (let n = 1; n <= 8; n++) await first.journal.put(large(n), never);
  await first.stop();
  const lost = claimsIn(rig, 0);
  const kept = rig.stored.map((uid) => Number(uid.slice(-12))).filter((n) => !lost.includes(n));
  assert.ok(lost.length > 0 && kept.length > 2, `${lost.length} lost, ${kept.length} kept`);
  deleteShard(rig, 0);
  const second = await rig.open();
  assert.deepEqual(
    second.heard.toSorted(),
    kept.map((n) => `own claim-${n}`),
  );
  await second.journal.put(large(9), never);
  assert.deepEqual(new Set(rig.stored), new Set([...kept, 9].map(uidOf)));
});

test('a journal that was never written is read with few requests', async () => {
  await using rig = await Rig.start();
  await rig.open();
  const reads = rig.server.requestLog.entries({ verb: 'get' });
  assert.ok(reads.length <= 10, `${reads.length} reads`);
});

test('the leader writes a shard again within two minutes of its deletion', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const process = await rig.open({ clock });
  await process.journal.put(recordOf(1), never);
  deleteShard(rig, 0);
  await clock.until(() => rig.shard() !== undefined && rig.stored.length === 1, { withinMs: 120_000 });
  assert.deepEqual(rig.stored, [uidOf(1)]);
  assert.deepEqual(process.heard, []);
});
