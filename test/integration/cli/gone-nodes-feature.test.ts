/** When a node looks for the records of nodes that are gone. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRegistry } from '../../../src/base/metrics.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { goneNodesFeature } from '../../../src/cli/features/gone-nodes-feature.ts';
import { controllerMetrics, type FeatureOptions } from '../../../src/cli/run-phase-options.ts';
import { leases } from '../../../src/kube/election/lease-record.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

async function scene(flags: readonly string[], random = 0.5) {
  const api = await SandboxApi.start();
  const clock = new ManualClock({ turns: 60 });
  const lines: LogLine[] = [];
  const environment = { NODE_NAME: 'own', POD_NAMESPACE: 'ns1' };
  const parsed = parseCommandLine({ argv0: 'x', args: flags, environment, version: 'v0' });
  assert.equal(parsed.kind, 'run');
  const { config } = parsed;
  const registry = createRegistry();
  const stop = new AbortController();
  const feature = goneNodesFeature({
    config,
    driver: { name: 'local.csi' },
    client: api.client,
    transport: api.transport,
    metrics: controllerMetrics(registry, config, clock),
    random: () => random,
    clock,
    logger: recordedLogger(lines),
  } as unknown as FeatureOptions);
  const running = feature?.run?.({ stop: stop.signal, abort: stop.signal });
  const lists = () => api.server.requestLog.entries({ resource: 'leases', verb: 'list' }).length;
  return {
    ...{ api, clock, lines, registry, feature, lists },
    addJournal: (node: string): void => {
      const metadata = { namespace: 'ns1', name: `local-csi.${node}-journal-0` };
      api.own.create(leases, { metadata: { ...metadata, annotations: { 'csi-provisioner.journal/u1': '{}' } } });
    },
    warnings: () => lines.filter(({ level }) => level === 'warn').length,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'));
      await running;
      await api[Symbol.asyncDispose]();
    },
  };
}

describe('a node', () => {
  test('looks for records of nodes that are gone after a random delay, then once a day', async () => {
    await using rig = await scene(['--node-deployment']);
    const { clock, lists, addJournal, warnings } = rig;
    addJournal('gone');
    await clock.advance(5 * minuteMs - 1);
    assert.equal(lists(), 0);
    await clock.advance(1);
    await eventually(() => assert.equal(warnings(), 1));
    addJournal('later-gone');
    await clock.advance(dayMs - 1);
    assert.equal(lists(), 1);
    await clock.advance(1);
    await eventually(() => assert.equal(warnings(), 2));
    assert.equal(lists(), 2);
    assert.match(await rig.registry.metrics(), /^intent_journal_reported_total\{reason="node-gone"\} 2$/m);
  });

  test('looks again after an hour when the API server did not answer', async () => {
    await using rig = await scene(['--node-deployment']);
    const { api, clock, lines } = rig;
    api.server.faults.add({ match: { verb: 'list' }, action: { type: 'status', code: 500 } });
    await clock.advance(5 * minuteMs);
    const failures = () => lines.filter(({ message }) => message.includes('could not be looked for')).length;
    await eventually(() => assert.equal(failures(), 1));
    await clock.advance(60 * minuteMs);
    await eventually(() => assert.equal(failures(), 2));
  });

  for (const flags of [[], ['--leader-election'], ['--node-deployment', '--intent-journal=off']]) {
    test(`does not look with ${flags.join(' ') || 'no flag'}`, async () => {
      await using rig = await scene(flags);
      assert.equal(rig.feature, undefined);
    });
  }
});
