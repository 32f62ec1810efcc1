import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'node:test';
import { systemClock } from '../../../../src/base/clock.ts';
import { silentLogger } from '../../../../src/base/logger.ts';
import { TransportError } from '../../../../src/kube/client/api-error.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { clusterJournal } from '../../../../src/provision/intent-journal/cluster-journal.ts';
import { never, recordOf, Rig } from './rig.ts';

test('a write ends when the journal ends, whatever the reason of the end', async () => {
  await using rig = await Rig.start();
  const { transport } = await rig.open();
  const journal = clusterJournal({
    client: new KubeClient({ transport, fieldManager: 'test' }),
    namespace: 'ns',
    lockName: 'other',
    isKnownProvisioner: () => true,
    exclusive: true,
    clock: systemClock,
    logger: silentLogger,
  });
  const run = new AbortController();
  const running = journal.run(run.signal);
  const ignore = (): void => undefined;
  const listener = {
    onFound: ignore,
    onGone: ignore,
    onDiscarded: ignore,
    onDrainEnded: ignore,
    onRewound: ignore,
    onFenced: ignore,
  };
  await journal.open(listener, never);
  const hanging = rig.fault({
    match: { resource: 'leases', verb: 'update' },
    action: { type: 'delay', ms: 3_600_000 },
  });
  const put = journal.put(recordOf(1), never);
  while (hanging.hits === 0) await nextTurn();
  run.abort(new TransportError('connection refused', { code: 'ECONNREFUSED' }));
  await assert.rejects(put, /connection refused/);
  await running;
});
