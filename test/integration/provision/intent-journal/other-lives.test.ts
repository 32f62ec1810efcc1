import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { leaseResource, never, prefix, recordOf, Rig, uidOf } from './rig.ts';

const dayMs = 86_400_000;

test('records that nobody has renewed for a day are only reported; those of a living process are renewed', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const first = await rig.open({ clock });
  await first.journal.put(recordOf(1), never);
  await clock.advance(dayMs + 7_200_000);
  assert.deepEqual((await rig.open({ clock })).heard, ['own claim-1']);
  const later = clock.elsewhere({ wallMs: dayMs + 60_000 });
  assert.deepEqual((await rig.open({ clock: later })).heard, ['own claim-1 (report only)']);
});

test('a shard in a newer format is left alone, and its number is not used', async () => {
  await using rig = await Rig.start();
  const annotations = { [`${prefix}shard`]: '{"format":2,"uid":"u"}', [`${prefix}${uidOf(9)}`]: 'whatever' };
  rig.api.create(leaseResource, { metadata: { namespace: 'ns', name: 'lock-journal-0', annotations } });
  const { resourceVersion } = rig.shard()!.metadata;
  const first = await rig.open();
  await first.journal.put(recordOf(1), never);
  assert.equal(rig.shard()?.metadata.resourceVersion, resourceVersion);
  assert.notEqual(rig.shard(1)?.metadata.annotations?.[prefix + uidOf(1)], undefined);
  assert.deepEqual(first.reported, ['unreadable']);
  assert.deepEqual((await rig.open()).heard, ['own claim-1']);
});

test('entries that cannot be read, or lack what every record has, are reported once and kept', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  await first.journal.put(recordOf(1), never);
  const claim = { namespace: 'ns', name: 'claim-5', uid: uidOf(5) };
  const edited = JSON.stringify({ writer: 'w', record: { claim, phase: 'create', plan: {}, volume: { name: 'v' } } });
  rig.annotate(0, { [prefix + uidOf(2)]: '{"record":', [prefix + uidOf(5)]: edited });
  const second = await rig.open();
  await second.journal.put(recordOf(3), never);
  await second.journal.put(recordOf(4), never);
  assert.deepEqual(second.heard, ['own claim-1']);
  assert.deepEqual(second.reported, ['unreadable', 'unreadable']);
  assert.equal(rig.shard()?.metadata.annotations?.[prefix + uidOf(2)], '{"record":');
  assert.equal(rig.shard()?.metadata.annotations?.[prefix + uidOf(5)], edited);
});

test('an operator discards a stuck record, but no other', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const process = await rig.open({ clock });
  await process.journal.put(recordOf(1, { phase: 'stuck' }), never);
  await process.journal.put(recordOf(2), never);
  rig.annotate(0, { [`${prefix}discard`]: `${uidOf(1)}, ${uidOf(2)}` });
  await clock.until(() => process.heard.length > 0, { withinMs: 80_000 });
  assert.deepEqual(process.heard, ['discarded 01']);
  assert.deepEqual(rig.stored, [uidOf(2)]);
  assert.equal(rig.shard()?.metadata.annotations?.[`${prefix}discard`], undefined);
  assert.match(JSON.stringify(process.log), /not discarded/);
});

test('a conflict with a change of other metadata is no foreign writer, and the change stays', async () => {
  await using rig = await Rig.start();
  const process = await rig.open();
  await process.journal.put(recordOf(1), never);
  rig.annotate(0, { 'example.com/mine': 'yes' });
  await process.journal.put(recordOf(2), never);
  assert.equal(rig.shard()?.metadata.annotations?.['example.com/mine'], 'yes');
  rig.annotate(0, { [prefix + uidOf(1)]: undefined });
  await process.journal.put(recordOf(3), never);
  assert.deepEqual(rig.stored, [1, 2, 3].map(uidOf));
  assert.deepEqual(process.heard, []);
});

test('a requirement over 5,000 segments goes unprotected with a loud line, a smaller one is stored once', async () => {
  await using rig = await Rig.start();
  const process = await rig.open();
  const segments = (count: number): object[] =>
    Array.from({ length: count }, (_, i) => ({
      segments: { 'topology.example.com/zone-of-the-rack': `zone-${i}-${'x'.repeat(90)}` },
    }));
  const plan = (count: number): { plan: Record<string, unknown> } => ({
    plan: { topology: { requisite: segments(count) } },
  });
  assert.equal(await process.journal.put(recordOf(1, plan(5000)), never), 'unprotected');
  assert.match(process.log.find(({ level }) => level === 'error')?.message ?? '', /too large/);
  for (const n of [2, 3, 4]) assert.equal(await process.journal.put(recordOf(n, plan(800)), never), 'durable');
  assert.equal(rig.shards.length, 1);
  assert.ok(JSON.stringify(rig.shard()).length < 200_000);
  const next = await rig.open();
  assert.deepEqual(next.found.get(uidOf(4))?.record, recordOf(4, plan(800)));
  for (const n of [2, 3, 4]) next.journal.remove(uidOf(n));
  await next.journal.flush(never);
  assert.ok(JSON.stringify(rig.shard()).length < 1000);
});

test('ConfigMaps keep the records as well', async () => {
  await using rig = await Rig.start();
  const configMaps = { group: '', version: 'v1', plural: 'configmaps' };
  const first = await rig.open({ backing: 'configmap' });
  await first.journal.put(recordOf(1, { phase: 'stuck' }), never);
  const stored = structuredClone(rig.api.get(configMaps, { namespace: 'ns', name: 'lock-journal-0' }))!;
  assert.deepEqual(Object.keys(stored['data'] as object).sort(), [uidOf(1), 'shard']);
  stored.metadata.annotations = { [`${prefix}discard`]: uidOf(1) };
  rig.api.update(configMaps, stored);
  const second = await rig.open({ backing: 'configmap' });
  assert.deepEqual(second.found.get(uidOf(1))?.record, recordOf(1, { phase: 'stuck' }));
  await second.journal.flush(never);
  assert.deepEqual(second.heard, ['own claim-1', 'discarded 01']);
});
