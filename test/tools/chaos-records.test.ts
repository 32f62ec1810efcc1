import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJournal } from '../../scripts/chaos/journal-records.ts';
import { KubeClient } from '../../src/kube/client/kube-client.ts';
import { never, recordOf, Rig, uidOf } from '../integration/provision/intent-journal/rig.ts';

test('a chaos run reads the records that the journal writes', async () => {
  await using rig = await Rig.start();
  const process = rig.process();
  const client = new KubeClient({ transport: process.transport, fieldManager: 'test' });
  assert.equal(await readJournal(client, 'ns'), undefined);
  await using opened = await rig.open();
  await opened.journal.put(recordOf(1), never);
  await opened.journal.put(recordOf(2, { phase: 'delete', handle: 'volume-2' }), never);
  const found = await readJournal(client, 'ns');
  assert.deepEqual(
    found?.toSorted((a, b) => a.claimUid.localeCompare(b.claimUid)),
    [
      {
        claimUid: uidOf(1),
        volumeName: `pvc-${uidOf(1)}`,
        handle: undefined,
        phase: 'create',
        problem: undefined,
        reason: undefined,
      },
      {
        claimUid: uidOf(2),
        volumeName: `pvc-${uidOf(2)}`,
        handle: 'volume-2',
        phase: 'delete',
        problem: undefined,
        reason: undefined,
      },
    ],
  );
});
