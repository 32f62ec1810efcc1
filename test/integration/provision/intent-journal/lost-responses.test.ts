/** A process does not know whether the server has carried out a write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerKey, type ShardHeader } from '../../../../src/provision/intent-journal/shard-contents.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, prefix, recordOf, Rig, uidOf } from './rig.ts';

/** Who has written the shard last, and its how many-th write that was. */
function lastWrite(rig: Rig): Pick<ShardHeader, 'writer' | 'sequence'> {
  const text = rig.shard()?.metadata.annotations?.[prefix + headerKey] ?? '';
  const { writer, sequence } = JSON.parse(text) as ShardHeader;
  return { writer, sequence };
}

test('a write that was not carried out is repeated, also when one of another process has its sequence number', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const { journal, heard } = await rig.open({ exclusive: false, writer: 'first', clock });
  const other = await rig.open({ exclusive: false, writer: 'second' });
  let first: string | undefined;
  void journal.put(recordOf(1), never).then((how) => (first = how));
  await clock.until(() => first !== undefined);
  const { sequence } = lastWrite(rig);
  for (let n = 2; lastWrite(rig).writer === 'first' || lastWrite(rig).sequence < sequence; n++) {
    await other.journal.put(recordOf(n), never);
  }
  assert.deepEqual(lastWrite(rig), { writer: 'second', sequence });

  const drop = rig.fault({
    match: { userAgent: 'first', verb: 'update', resource: 'leases' },
    action: { type: 'dropBefore' },
    times: 1,
  });
  let how: string | undefined;
  void journal.put(recordOf(20), never).then((protection) => (how = protection));
  await clock.until(() => drop.hits === 1);
  await other.journal.put(recordOf(21), never);
  assert.deepEqual(lastWrite(rig), { writer: 'second', sequence: sequence + 1 }, 'the number of the dropped write');
  await clock.until(() => how !== undefined);
  assert.equal(how, 'durable');
  assert.equal(rig.entry(20)?.writer, 'first');
  assert.ok(!heard.includes('gone 20'), heard.join(', '));
  assert.ok(rig.stored.includes(uidOf(21)));
});
