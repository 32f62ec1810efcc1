/** Two provisioners whose journals have the same name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitingText } from '../../../../src/provision/last-errors.ts';
import type { IntentRecord } from '../../../../src/provision/intent-journal/intent-journal.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { leaseResource, never, prefix, recordOf, Rig, uidOf } from './rig.ts';

const other = { isKnownProvisioner: (name: string) => name === 'drv-example.com' };
const long = { plan: { zones: 'z'.repeat(3000) } };

function recordOfOther(n: number, more: Parameters<typeof recordOf>[1] = {}): IntentRecord {
  const record = recordOf(n, more);
  return { ...record, volume: { ...record.volume, provisioner: 'drv-example.com' } };
}

test('a leader leaves the records of another provisioner as they are, and reports them once', async () => {
  await using rig = await Rig.start();
  const first = await rig.open({ writer: 'first' });
  for (const n of [1, 2]) await first.journal.put(recordOf(n, long), never);
  const second = await rig.open({ ...other, writer: 'second' });
  await second.journal.put(recordOfOther(3), never);
  await second.journal.put(recordOfOther(4), never);
  second.journal.remove(uidOf(3));
  await second.journal.flush(never);
  assert.deepEqual(second.heard, []);
  assert.deepEqual(second.reported, ['other-provisioner']);
  assert.deepEqual(
    second.log.filter(({ level }) => level === 'warn').map(({ message }) => message),
    ['The intent journal also holds records of another provisioner, which are left alone'],
  );
  assert.deepEqual(
    [1, 2].map((n) => rig.entry(n)?.writer),
    ['first', 'first'],
  );
  const third = await rig.open({ writer: 'third' });
  assert.deepEqual(third.heard.sort(), ['own claim-1', 'own claim-2']);
  assert.deepEqual(third.found.get(uidOf(2))?.record, recordOf(2, long));
  assert.equal(rig.entry(4)?.writer, 'second');
});

test('without leader election nobody takes over the records of a silent process of another provisioner', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const [ours, theirs] = [
    await rig.open({ clock, exclusive: false }),
    await rig.open({ ...other, clock, exclusive: false }),
  ];
  await ours.journal.put(recordOf(1, long), never);
  await theirs.journal.put(recordOfOther(2), never);
  await ours.journal.put(recordOf(3, long), never);
  assert.deepEqual(rig.stored, [1, 2, 3].map(uidOf));
  await theirs.stop();
  await clock.advance(200_000);
  assert.deepEqual(ours.heard, []);
  for (const n of [1, 3]) ours.journal.remove(uidOf(n));
  await ours.journal.flush(never);
  assert.deepEqual(rig.stored, [uidOf(2)]);
  const later = await rig.open({ ...other, clock });
  assert.deepEqual(later.heard, ['own claim-2']);
});

test('a claim whose volume another provisioner is making waits', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  await first.journal.put(recordOf(1), never);
  const second = await rig.open(other);
  await assert.rejects(second.journal.put(recordOfOther(1), never), (error: Error) => {
    assert.match(error.message, /belongs to the provisioner "drv\.example\.com": only its own sidecar can close/);
    assert.match(waitingText(error) ?? '', /^Waiting for another provisioner: the record of the claim /);
    return true;
  });
  assert.equal(rig.entry(1)?.record.volume.provisioner, 'drv.example.com');
});

test('a record of another provisioner is discarded by its own sidecar only', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  await first.journal.put(recordOf(1, { phase: 'stuck' }), never);
  rig.annotate(0, { [`${prefix}discard`]: uidOf(1) });
  const second = await rig.open(other);
  await second.journal.put(recordOfOther(2), never);
  assert.equal(rig.shard()?.metadata.annotations?.[`${prefix}discard`], uidOf(1));
  const third = await rig.open();
  await third.journal.flush(never);
  assert.deepEqual(third.heard, ['own claim-1', 'discarded 01']);
  assert.deepEqual(rig.stored, [uidOf(2)]);
});

test('in a restored backup nothing may be deleted for the records of another provisioner that a process writes again', async () => {
  await using rig = await Rig.start();
  const first = await rig.open();
  await first.journal.put(recordOf(1), never);
  rig.annotate(0, { [prefix + uidOf(6)]: '{"not JSON' });
  const { annotations = {} } = rig.shard()!.metadata;
  rig.api.delete(leaseResource, { namespace: 'ns', name: 'lock-journal-0' });
  rig.api.create(leaseResource, { metadata: { namespace: 'ns', name: 'lock-journal-0', annotations } });
  const second = await rig.open(other);
  await second.journal.put(recordOfOther(2), never);
  assert.match(rig.entry(1)?.reportOnly ?? '', /is a copy/);
  assert.equal(rig.shard()?.metadata.annotations?.[prefix + uidOf(6)], '{"not JSON');
  assert.deepEqual((await rig.open()).heard, ['own claim-1 (report only)']);
});
