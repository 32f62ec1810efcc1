/** How old a record is: that is its own, whoever writes its shard. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, prefix, recordOf, Rig, uidOf } from './rig.ts';

const hourMs = 3_600_000;
/** Hours pass in minutes, not in tens of seconds. */
const rare = { roundMs: 300_000 };

/** The text of the n-th claim's entry. */
function textOf(rig: Rig, n: number): string {
  return rig.shard()?.metadata.annotations?.[prefix + uidOf(n)] ?? '';
}

test('a record of another provisioner stays as old as it is', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const other = { isKnownProvisioner: (name: string) => name === 'other.example.com' };
  const first = await rig.open({ ...rare, clock, writer: 'first' });
  await first.journal.put(recordOf(1), never);
  await first.stop();
  for (let life = 0; life < 3; life++) {
    const process = await rig.open({ ...rare, clock, ...other });
    const record = recordOf(10 + life);
    await process.journal.put({ ...record, volume: { ...record.volume, provisioner: 'other.example.com' } }, never);
    await clock.advance(10 * hourMs);
    await process.stop();
  }
  assert.deepEqual((await rig.open({ clock })).heard, ['own claim-1 (report only)']);
});

test('a record of a process that lives is renewed, also while its shard is written for others all the time', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const process = await rig.open({ ...rare, clock });
  await process.journal.put(recordOf(1), never);
  for (let n = 2; n < 54; n++) {
    await process.journal.put(recordOf(n), never);
    process.journal.remove(uidOf(n));
    await clock.advance(hourMs / 2);
  }
  assert.deepEqual((await rig.open({ clock })).heard, ['own claim-1']);
});

test('without leader election a process does not renew what another one has left', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock({ turns: 3 });
  const first = await rig.open({ ...rare, clock, writer: 'first', exclusive: false });
  await first.journal.put(recordOf(1), never);
  await first.stop();
  const before = textOf(rig, 1);
  // never silent for long enough to be taken over
  const second = await rig.open({ ...rare, clock, exclusive: false, adoptAfterMs: 1000 * hourMs });
  await second.journal.put(recordOf(2), never);
  await clock.advance(3 * hourMs);
  assert.equal(textOf(rig, 1), before);
  await clock.advance(22 * hourMs);
  await second.stop();
  assert.deepEqual((await rig.open({ clock })).heard.toSorted(), ['own claim-1 (report only)', 'own claim-2']);
});
