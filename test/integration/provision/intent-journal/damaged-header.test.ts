/** An administrator edits the header of a shard by hand, or it is damaged otherwise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJournal } from '../../../../src/provision/intent-journal/read-journal.ts';
import type { IntentJournal } from '../../../../src/provision/intent-journal/intent-journal.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { leaseResource, never, type Process, prefix, recordOf, Rig, uidOf } from './rig.ts';

/** A record that leaves room for only one more of its size in a shard. */
const large = (n: number) => recordOf(n, { plan: { padding: `${n}-`.repeat(30_000) } });

const headerKey = `${prefix}shard`;

function headerOf(rig: Rig, n: number): string {
  return rig.shard(n)?.metadata.annotations?.[headerKey] ?? '';
}

/** A field of a header, replaced. */
const withField =
  (name: string, value: unknown) =>
  (text: string): string =>
    JSON.stringify({ ...(JSON.parse(text) as object), [name]: value });

/** Damage after which the header can be used still. */
const slight: Record<string, (text: string) => string> = {
  'five billion shards': (text) => withField('shards', 0)(text).replace('"shards":0', '"shards":5e9'),
  'a negative number of shards': withField('shards', -1),
  'renewals that are none': withField('renewals', null),
};

const severe: Record<string, (text: string) => string> = {
  'text that is not JSON': () => 'edited by hand',
  'compressed bytes': () => 'gzip:H4sIAAAAAAAAA6tWKskvyVeyUkpUqgUAbKcyFw4AAAA=',
  'no time': withField('renewedAt', 'yesterday'),
};

const all = [1, 2, 3, 4, 5, 6];

/** Fills two shards and more. */
async function fill(rig: Rig, { journal }: Process, clock?: ManualClock): Promise<void> {
  for (const n of all) await put(journal, n, clock);
  assert.ok(rig.shards.length > 1, `${rig.shards.length} shards`);
}

/** Stores a large record. */
async function put(journal: IntentJournal, n: number, clock?: ManualClock): Promise<void> {
  let how: string | undefined;
  const stored = journal.put(large(n), never).then((protection) => (how = protection));
  if (clock !== undefined) await clock.until(() => how !== undefined);
  assert.equal(await stored, 'durable');
}

/** The damage is reported once, with all that an operator needs. */
function checkReport(process: Process, { shard, value }: { shard: number; value: string }): void {
  const errors = process.log.filter(({ level }) => level === 'error');
  assert.equal(errors.length, 1, JSON.stringify(errors));
  const [{ message, fields } = { message: '', fields: {} }] = errors;
  assert.match(message, /header of a Lease of the intent journal is damaged/);
  const { lease, annotation, value: shown } = fields as Record<string, string>;
  assert.deepEqual([lease, annotation, shown], [`ns/lock-journal-${shard}`, headerKey, value]);
  assert.deepEqual(process.reported, ['unreadable']);
}

for (const [isSlight, cases] of [
  [true, slight],
  [false, severe],
] as const) {
  for (const [what, damage] of Object.entries(cases)) {
    for (const shard of [0, 1]) {
      test(`after ${what} in the header of shard ${shard}, edited while nobody ran, all records are found`, async () => {
        await using rig = await Rig.start();
        const first = await rig.open({ writer: 'first' });
        await fill(rig, first);
        await first.stop();
        const value = damage(headerOf(rig, shard));
        rig.annotate(shard, { [headerKey]: value });
        const inIt = all.filter((n) => rig.shard(shard)?.metadata.annotations?.[prefix + uidOf(n)] !== undefined);
        assert.ok(inIt.length > 0);
        const second = await rig.open();
        const isMarked = (n: number): boolean => !isSlight && inIt.includes(n);
        assert.deepEqual(
          second.heard.toSorted(),
          all.map((n) => `own claim-${n}${isMarked(n) ? ' (report only)' : ''}`),
        );
        checkReport(second, { shard, value });
        assert.equal(rig.shard(shard)?.metadata.annotations?.['csi-provisioner.journal-damaged/shard'], value);
        await put(second.journal, 7);
        assert.deepEqual(rig.stored, [...all, 7].map(uidOf));
        const third = await rig.open();
        assert.deepEqual(
          third.log.filter(({ level }) => level === 'error'),
          [],
        );
        assert.equal(third.heard.length, 7);
      });
    }

    test(`after ${what} in a header, edited while the process lives, it goes on and writes it again`, async () => {
      await using rig = await Rig.start();
      const clock = new ManualClock({ turns: 3 });
      const process = await rig.open({ clock, writer: 'first' });
      await fill(rig, process, clock);
      for (const shard of [0, 1]) {
        const before = headerOf(rig, shard);
        rig.annotate(shard, { [headerKey]: damage(before) });
        await clock.until(() => headerOf(rig, shard).includes('"writer":"first"') && isWhole(headerOf(rig, shard)), {
          withinMs: 130_000,
        });
      }
      await put(process.journal, 7, clock);
      assert.deepEqual(process.heard, []);
      const next = await rig.open({ clock });
      assert.deepEqual(
        next.heard.toSorted(),
        [...all, 7].map((n) => `own claim-${n}`),
      );
    });
  }
}

function isWhole(text: string): boolean {
  const { uid, sequence, renewedAt, renewals, shards = 1 } = JSON.parse(text) as Record<string, unknown>;
  const isTime = typeof renewedAt === 'string' && !Number.isNaN(Date.parse(renewedAt));
  const isCount = Number.isInteger(shards) && Number(shards) >= 1 && Number(shards) < 100;
  return typeof uid === 'string' && Number.isInteger(sequence) && isTime && isCount && renewals === undefined;
}

test('a number of shards that is too small hides no record', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  await fill(rig, first);
  await first.stop();
  rig.annotate(0, { [headerKey]: withField('shards', 1)(headerOf(rig, 0)) });
  const second = await rig.open();
  assert.equal(second.heard.length, 6);
});

test('a number of shards that is far too large is put right', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const first = await rig.open({ clock });
  await fill(rig, first, clock);
  const edit = (): void => rig.annotate(0, { [headerKey]: withField('shards', 900)(headerOf(rig, 0)) });
  const isRight = (): boolean => (JSON.parse(headerOf(rig, 0)) as { shards: number }).shards < 100;
  edit();
  await clock.until(isRight, { withinMs: 130_000 });
  await first.stop();
  edit();
  const second = await rig.open();
  assert.equal(second.heard.length, 6);
  assert.ok(isRight(), headerOf(rig, 0));
  assert.ok(rig.shards.length < 10, 'no Lease is made for a number that nobody uses');
});

test('without leader election each process keeps its records through a damaged header', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const a = await rig.open({ exclusive: false, writer: 'a', clock });
  await a.journal.put(recordOf(1), never);
  const b = await rig.open({ exclusive: false, writer: 'b', clock });
  await b.journal.put(recordOf(2), never);
  await clock.until(() => a.heard.length > 0);
  rig.annotate(0, { [headerKey]: 'edited by hand' });
  await clock.advance(150_000);
  assert.deepEqual(rig.stored, [1, 2].map(uidOf));
  assert.deepEqual([rig.entry(1)?.writer, rig.entry(2)?.writer], ['a', 'b']);
  assert.deepEqual([rig.entry(1)?.reportOnly, rig.entry(2)?.reportOnly], [undefined, undefined]);
  assert.deepEqual([a.heard, b.heard], [['foreign claim-2'], ['foreign claim-1']]);
});

test('a former leader whose header was lost meanwhile does not take the records of its successor', async () => {
  await using rig = await Rig.start();
  const first = await rig.open({ writer: 'first' });
  await first.journal.put(recordOf(1), never);
  await rig.open({ writer: 'second' });
  rig.annotate(0, { [headerKey]: 'edited by hand' });
  await assert.rejects(first.journal.put(recordOf(2), never), /written by another process \(second\)/);
});

test('a long damaged header is logged shortened', async () => {
  await using rig = await Rig.start();
  rig.api.create(leaseResource, {
    metadata: { namespace: 'ns', name: 'lock-journal-0', annotations: { [headerKey]: 'x'.repeat(100_000) } },
  });
  const process = await rig.open();
  assert.ok(JSON.stringify(process.log).length < 1000);
  assert.equal(await process.journal.put(recordOf(1), never), 'durable');
});

test('those who only look read all records, and name the Lease whose header is damaged', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  await fill(rig, first);
  rig.annotate(0, { [headerKey]: slight['five billion shards']!(headerOf(rig, 0)) });
  const { records, unreadable } = await readJournal({
    client: new KubeClient({ transport: first.transport, fieldManager: 'test' }),
    namespace: 'ns',
    lockName: 'lock',
    isKnownProvisioner: () => true,
    clock: { wallMs: () => Date.now() },
  });
  assert.equal(records.length, 6);
  assert.deepEqual(unreadable, ['lock-journal-0/shard']);
});
