import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { patienceMs } from '../../../support/patience.ts';
import { leaseResource, never, open, prefix, recordOf, Rig, uidOf } from './rig.ts';

test('a record is durable when put resolves, and the next leader finds it unchanged', async () => {
  await using rig = await Rig.start();
  const first = await rig.open({ writer: 'first' });
  assert.equal(await first.journal.put(recordOf(1), never), 'durable');
  assert.equal(await first.journal.put(recordOf(2, { phase: 'delete', handle: 'h' }), never), 'durable');
  assert.deepEqual(rig.stored, [uidOf(1), uidOf(2)]);
  const second = await rig.open({ writer: 'second' });
  assert.deepEqual(second.heard.sort(), ['own claim-1', 'own claim-2']);
  assert.deepEqual(second.found.get(uidOf(1))?.record, recordOf(1));
  assert.deepEqual(second.found.get(uidOf(2))?.record, recordOf(2, { phase: 'delete', handle: 'h' }));
  assert.equal(rig.entry(1)?.writer, 'second');
});

test('a late write of the former leader conflicts, and fences it', async () => {
  await using rig = await Rig.start();
  const first = await rig.open({ writer: 'first' });
  await first.journal.put(recordOf(1), never);
  const second = await rig.open({ writer: 'second' });
  await assert.rejects(first.journal.put(recordOf(2), never), /written by another process \(second\)/);
  assert.deepEqual(first.heard, ['fenced']);
  await assert.rejects(first.journal.put(recordOf(3), never), /written by another process/);
  assert.deepEqual(rig.stored, [uidOf(1)]);
  assert.equal(await second.journal.put(recordOf(4), never), 'durable');
});

test('closed records are gone from the cluster after a flush', async () => {
  await using rig = await Rig.start();
  const { journal } = await rig.open();
  for (const n of [1, 2, 3]) await journal.put(recordOf(n), never);
  journal.remove(uidOf(1));
  await journal.removeNow(uidOf(2), never);
  assert.deepEqual(rig.stored, [uidOf(3)]);
  journal.note(recordOf(3, { phase: 'unclear' }));
  await journal.flush(never);
  assert.equal(rig.entry(3)?.record.phase, 'unclear');
  journal.remove(uidOf(3));
  await journal.flush(never);
  assert.deepEqual(rig.stored, []);
});

test('a write whose answer is lost counts as done', async () => {
  await using rig = await Rig.start();
  const { journal, heard } = await rig.open();
  rig.fault({ match: { verb: 'update', resource: 'leases' }, action: { type: 'dropAfter' }, times: 1 });
  assert.equal(await journal.put(recordOf(1), never), 'durable');
  assert.deepEqual(rig.stored, [uidOf(1)]);
  assert.equal(await journal.put(recordOf(2), never), 'durable');
  assert.deepEqual(heard, []);
});

test('a shard that is empty suddenly, as somebody recreated it, is filled again from memory', async () => {
  await using rig = await Rig.start();
  const { journal, heard } = await rig.open();
  await journal.put(recordOf(1), never);
  const name = { namespace: 'ns', name: 'lock-journal-0' };
  rig.api.delete(leaseResource, name);
  rig.api.create(leaseResource, { metadata: name });
  await journal.put(recordOf(2), never);
  assert.deepEqual(heard, []);
  assert.deepEqual(rig.stored, [uidOf(1), uidOf(2)]);
  assert.deepEqual((await rig.open()).heard.sort(), ['own claim-1', 'own claim-2']);
});

test('conflicts without end do not keep the API server busy', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const { journal } = await rig.open({ clock });
  const action = { type: 'status', code: 409, reason: 'Conflict' } as const;
  const fault = rig.fault({ match: { verb: 'update', resource: 'leases' }, action });
  const put = journal.put(recordOf(1), never);
  put.catch(() => undefined);
  await clock.advance(20);
  for (let turns = 0; turns < 200; turns++) await clock.settle();
  assert.ok(fault.hits > 3 && fault.hits < 12, `${fault.hits} writes while no time passes`);
  fault.remove();
  await clock.until(() => rig.stored.length > 0);
  assert.equal(await put, 'durable');
});

test('the end of a process does not wait for a look at the journal that is under way', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const { journal } = await rig.open({ clock });
  await journal.put(recordOf(1, { phase: 'stuck' }), never);
  const delay = rig.fault({ match: { verb: 'get', resource: 'leases' }, action: { type: 'delay', ms: 3_600_000 } });
  await clock.until(() => delay.hits > 0, { withinMs: 80_000 });
  const patience = AbortSignal.timeout(patienceMs);
  await journal.flush(patience);
  assert.equal(patience.aborted, false);
});

test('a shard that somebody deleted is written again from memory', async () => {
  await using rig = await Rig.start();
  const { journal } = await rig.open();
  await journal.put(recordOf(1), never);
  rig.api.delete(
    { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' },
    { namespace: 'ns', name: 'lock-journal-0' },
  );
  await journal.put(recordOf(2), never);
  assert.deepEqual(rig.stored, [uidOf(1), uidOf(2)]);
  const shard = rig.shard();
  const header = JSON.parse(shard?.metadata.annotations?.[`${prefix}shard`] ?? '{}') as { uid: string };
  assert.equal(header.uid, shard?.metadata.uid);
});

test('without leader election a copied record keeps its mark, also when the next process comes before it is taken over', async () => {
  await using rig = await Rig.start();
  const first = await rig.open({ exclusive: false });
  await first.journal.put(recordOf(1), never);
  const header = rig.shard()?.metadata.annotations?.[`${prefix}shard`] ?? '';
  rig.annotate(0, { [`${prefix}shard`]: header.replace(/"uid":"[^"]*"/, '"uid":"of another cluster"') });
  for (let i = 0; i < 2; i++) {
    const next = await rig.open({ exclusive: false });
    assert.deepEqual(next.heard, ['foreign claim-1 (report only)']);
    await next.journal.put(recordOf(2 + i), never);
    await next.journal.removeNow(uidOf(2 + i), never);
  }
});

test('a lost lease ends all writes under way, and everybody who waits for one', async () => {
  await using rig = await Rig.start();
  const process = await rig.open({ groupMs: 0 });
  await Promise.all(Array.from({ length: 60 }, (_, n) => process.journal.put(recordOf(n), never)));
  for (let n = 100; rig.shards.length < 3; n++) await process.journal.put(recordOf(n), never);
  // one waits for its answer, the others for their next attempt: they end at different times
  rig.fault({ match: { verb: 'update' }, action: { type: 'delay', ms: 60_000 }, times: 1 });
  const refused = rig.fault({ match: { verb: 'update' }, action: { type: 'status', code: 429 } });
  const waiting = rig.stored.map((uid) => process.journal.put(recordOf(Number(uid.slice(-4))), never));
  await eventually(() => assert.ok(refused.hits >= 2));
  process.transport.fence(new Error('the lease is lost'));
  for (const each of await Promise.allSettled(waiting)) assert.equal(each.status, 'rejected');
});

test('a journal that was copied is reported only, also after it was written again', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  await first.journal.put(recordOf(1), never);
  const header = rig.shard()?.metadata.annotations?.[`${prefix}shard`] ?? '';
  rig.annotate(0, { [`${prefix}shard`]: header.replace(/"uid":"[^"]*"/, '"uid":"of another cluster"') });
  const second = await rig.open();
  assert.deepEqual(second.heard, ['own claim-1 (report only)']);
  const third = rig.process();
  await open(third);
  assert.deepEqual(third.heard, ['own claim-1 (report only)']);
});
