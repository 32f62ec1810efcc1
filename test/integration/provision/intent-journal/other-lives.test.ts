import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
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

for (const format of [1, 3]) {
  test(`a shard in format ${format} is left alone and named, and its number is not used`, async () => {
    await using rig = await Rig.start();
    const annotations = { [`${prefix}shard`]: `{"format":${format},"uid":"u"}`, [`${prefix}${uidOf(9)}`]: 'whatever' };
    rig.api.create(leaseResource, { metadata: { namespace: 'ns', name: 'lock-journal-0', annotations } });
    const { resourceVersion } = rig.shard()!.metadata;
    const first = await rig.open();
    await first.journal.put(recordOf(1), never);
    assert.equal(rig.shard()?.metadata.resourceVersion, resourceVersion);
    assert.notEqual(rig.shard(1)?.metadata.annotations?.[prefix + uidOf(1)], undefined);
    assert.deepEqual(first.reported, ['unreadable']);
    assert.deepEqual(
      first.log.filter(({ level }) => level === 'error').map(({ fields }) => fields),
      [{ lease: 'ns/lock-journal-0', format, ownFormat: 2 }],
    );
    assert.deepEqual((await rig.open()).heard, ['own claim-1']);
  });
}

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

test('a requirement over 5,000 segments is protected, compressed and stored once', async () => {
  await using rig = await Rig.start();
  const process = await rig.open();
  const segments = (i: number): Record<string, string> => ({
    'topology.example.com/node': `ip-10-${i % 7}-${(i * 37) % 256}-${i >> 5}.eu-west-1.compute.internal`,
    'topology.kubernetes.io/region': 'eu-west-1',
    'topology.kubernetes.io/zone': `eu-west-1${'abc'.charAt(i % 3)}`,
  });
  const requisite = Array.from({ length: 5000 }, (_, i) => ({ segments: segments(i) }));
  const plan = (first: number): { plan: Record<string, unknown> } => ({ plan: { topology: { requisite, first } } });
  assert.ok(JSON.stringify(requisite).length > 800_000);
  for (const n of [1, 2, 3]) assert.equal(await process.journal.put(recordOf(n, plan(n)), never), 'durable');
  assert.equal(rig.shards.length, 1);
  assert.ok(JSON.stringify(rig.shard()).length < 60_000, `${JSON.stringify(rig.shard()).length}`);
  const next = await rig.open();
  for (const n of [1, 2, 3]) assert.deepEqual(next.found.get(uidOf(n))?.record, recordOf(n, plan(n)));
  for (const n of [1, 2, 3]) next.journal.remove(uidOf(n));
  await next.journal.flush(never);
  assert.ok(JSON.stringify(rig.shard()).length < 1000);
});

test('a record that fits into no shard is logged as an error, and its volume goes unprotected', async () => {
  await using rig = await Rig.start();
  const process = await rig.open();
  const noise = Array.from({ length: 5000 }, () => ({ segments: { node: randomUUID(), system: randomUUID() } }));
  const plan = { topology: { requisite: noise, first: 0 } };
  assert.equal(await process.journal.put(recordOf(1, { plan }), never), 'unprotected');
  assert.match(process.log.find(({ level }) => level === 'error')?.message ?? '', /too large/);
  assert.deepEqual(process.reported, ['too-large']);
});

test('a record is reported and kept where a long value that it needs cannot be unpacked', async () => {
  await using rig = await Rig.start();
  const zones = Array.from({ length: 800 }, (_, i) => ({ segments: { zone: `zone-${i}` } }));
  const first = await rig.open();
  for (const n of [1, 2]) await first.journal.put(recordOf(n, { plan: { zones: [...zones, n] } }), never);
  const stored = rig.shard()!.metadata.annotations!;
  const keyOf = (n: number): string =>
    prefix + ((rig.entry(n) as { shared?: [string[], string][] }).shared?.at(-1)?.[1] ?? '');
  assert.match(stored[keyOf(1)] ?? '', /^gzip:/);
  const damaged = (stored[keyOf(2)] ?? '').slice(0, -8);
  rig.annotate(0, { [keyOf(2)]: damaged });
  const second = await rig.open();
  assert.deepEqual(second.heard, ['own claim-1']);
  assert.deepEqual(second.found.get(uidOf(1))?.record, recordOf(1, { plan: { zones: [...zones, 1] } }));
  assert.deepEqual(second.reported, ['unreadable']);
  await second.journal.put(recordOf(3), never);
  second.journal.remove(uidOf(1));
  await second.journal.flush(never);
  assert.deepEqual(rig.stored, [uidOf(2), uidOf(3)]);
  assert.equal(rig.shard()?.metadata.annotations?.[keyOf(2)], damaged);
});
