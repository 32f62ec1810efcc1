/** Journals of a program on the library from before the settings of its election were changed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry } from '../../../src/base/metrics.ts';
import type { Provisioner } from '../../../src/provision/provisioner.ts';
import type { ElectionSettings } from '../../../src/run/election.ts';
import { type JournalSettings, otherJournals, provisionerJournal } from '../../../src/run/provisioner-journal.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';
import { never, recordOf, silentListener } from '../provision/intent-journal/rig.ts';

const notCalled = (): never => assert.fail('not called');
const recoverable = {
  provision: notCalled,
  delete: notCalled,
  plan: notCalled,
  fulfil: notCalled,
  revoke: notCalled,
  storageKeys: notCalled,
  handleKey: notCalled,
};

async function warnings(former: boolean | ElectionSettings, now: boolean | ElectionSettings): Promise<unknown[]> {
  await using api = await SandboxApi.start();
  api.own.create({ group: '', version: 'v1', plural: 'namespaces' }, { metadata: { name: 'default' } });
  const lines: LogLine[] = [];
  const clock = new ManualClock({ turns: 60 });
  const settings = (leaderElection: boolean | ElectionSettings): JournalSettings => ({
    ...{ provisionerName: 'drv.example.com', leaderElection, clock, logger: recordedLogger(lines) },
  });
  const provisioner = recoverable as unknown as Provisioner;
  const registry = createRegistry();
  const parts = { provisioner, isKnownProvisioner: () => true, client: api.client };
  const { intentJournal } = provisionerJournal(settings(former), { ...parts, registry });
  await intentJournal?.open(silentListener, never);
  await intentJournal?.put(recordOf(1), never);
  const stop = new AbortController();
  const running = otherJournals(settings(now), parts)?.run?.({ stop: stop.signal, abort: stop.signal });
  await clock.advance(1000);
  stop.abort();
  await running;
  return lines.map(({ level, fields }) => [level, fields]);
}

test('records under the name and in the namespace that are usual are named once others are set', async () => {
  const warned = [['warn', { lease: 'default/drv-example-com-journal-0', records: 1 }]];
  assert.deepEqual(await warnings(true, { lockName: 'other' }), warned);
  assert.deepEqual(await warnings(false, { namespace: 'ns2' }), warned);
  assert.deepEqual(await warnings(true, false), []);
});
