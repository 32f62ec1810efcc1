/** The API server goes back to an earlier state, such as after etcd was restored from a backup. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, prefix, recordOf, Rig, uidOf } from './rig.ts';

for (const exclusive of [true, false]) {
  const mode = exclusive ? 'with leader election' : 'without leader election';

  test(`a shard that is found as this process wrote it earlier is reported, ${mode}`, async () => {
    await using rig = await Rig.start();
    const { journal, heard, log } = await rig.open({ exclusive });
    await journal.put(recordOf(1), never);
    const backup = rig.shard()?.metadata.annotations;
    await journal.put(recordOf(2), never);
    assert.deepEqual(heard, []);
    rig.annotate(0, { ...backup, [prefix + uidOf(2)]: undefined });
    await journal.put(recordOf(3), never);
    assert.deepEqual(heard, ['rewound']);
    assert.match(
      JSON.stringify(log),
      /gone back to an earlier state.*ns\/lock-journal-0|ns\/lock-journal-0.*gone back to an earlier state/,
    );
    assert.deepEqual(rig.stored, [1, 2, 3].map(uidOf));
    await journal.put(recordOf(4), never);
    assert.deepEqual(heard, ['rewound'], 'once for each time');
  });

  test(`a shard of an earlier resource version is reported, ${mode}`, async () => {
    await using rig = await Rig.start();
    const { journal, heard } = await rig.open({ exclusive });
    await journal.put(recordOf(1), never);
    await journal.put(recordOf(2), never);
    rig.fault({ match: { verb: 'get', resource: 'leases' }, action: { type: 'staleRead', rvBack: 3 }, times: 1 });
    rig.annotate(0, { 'example.com/mine': 'yes' });
    await journal.put(recordOf(3), never);
    assert.deepEqual(heard, ['rewound']);
    assert.deepEqual(rig.stored, [1, 2, 3].map(uidOf));
  });
}

test('a shard of an earlier resource version that another process has written is reported, and closes no record', async () => {
  await using rig = await Rig.start();
  const { journal, heard } = await rig.open({ exclusive: false, writer: 'a' });
  const other = await rig.open({ exclusive: false, writer: 'b' });
  await journal.put(recordOf(1), never);
  await other.journal.put(recordOf(2), never);
  await journal.put(recordOf(3), never);
  heard.length = 0;
  rig.fault({ match: { verb: 'get', resource: 'leases' }, action: { type: 'staleRead', rvBack: 2 }, times: 1 });
  rig.annotate(0, { 'example.com/mine': 'yes' });
  await journal.put(recordOf(4), never);
  assert.deepEqual(heard, ['rewound']);
  assert.deepEqual(rig.stored, [1, 2, 3, 4].map(uidOf));
});

test('a write whose answer is lost, and one that was not carried out, are no way back', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const { journal, heard } = await rig.open({ clock });
  for (const type of ['dropAfter', 'dropBefore'] as const) {
    rig.fault({ match: { verb: 'update', resource: 'leases' }, action: { type }, times: 1 });
    let how: string | undefined;
    void journal.put(recordOf(type.length), never).then((protection) => (how = protection));
    await clock.until(() => how !== undefined);
  }
  assert.deepEqual(heard, []);
});
