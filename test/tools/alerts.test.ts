/**
 * The alert rules as Prometheus evaluates them, over the metrics of real sidecars in the states that they are about: recorded by
 * scripts/record-alerts.ts, a scrape every 30 seconds.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { stories } from '../../scripts/alerts/stories.ts';
import type { RecordedSeries } from '../../scripts/alerts/series.ts';
import { alertRules, ruleGroups } from '../support/alert-rules.ts';
import { builtPromtool, howToBuild, runPromtool } from '../support/promtool/promtool.ts';
import { livePage } from '../integration/live-metrics.ts';

/** Alerts of each recording that have fired at any time in it: these, and no others. */
const fired: Record<string, string[]> = {
  healthy: [],
  waiting: [],
  'provisioning-fails': ['ClaimsFail', 'DriverCallsFail', 'ProvisioningFails'],
  'deletions-fail': ['DeletionFails', 'DriverCallsFail', 'VolumesStay'],
  stopped: ['Absent'],
  'killed-often': ['Restarts'],
  'storage-lost': ['VolumesLost'],
  'audits-fail': ['AuditStopped', 'DriverCallsFail'],
  'calls-slow': ['DriverCallsSlow'],
  'queue-grows': ['QueueGrows'],
  'call-hangs': ['Stuck'],
  'no-leader': ['NoLeader'],
  'not-permitted': ['NotPermitted', 'WatchSilent'],
  'volumes-unsaved': ['ClaimsFail', 'NotPermitted', 'VolumesUnsaved'],
  'journal-unwritable': ['Unprotected'],
  'record-old': ['ClaimsFail', 'DriverCallsFail', 'ProvisioningFails', 'RecordOld'],
  'capacity-missing': ['CapacityMissing', 'DriverCallsFail'],
  'api-server-silent': ['WatchSilent'],
};

const program = await builtPromtool();
const skip = program === undefined ? howToBuild : false;
if (skip !== false) console.error(`The alert rules are NOT tested: ${skip}`);

interface Recording {
  name: string;
  series: RecordedSeries;
}

async function recording(name: string): Promise<Recording> {
  const file = path.join(import.meta.dirname, 'recorded-alerts', `${name}.json`);
  return { name, series: JSON.parse(await readFile(file, 'utf8')) as RecordedSeries };
}

/** A group of promtool's unit tests (Prometheus, "Unit testing for rules"). */
function testGroup({ name, series }: Recording): object {
  const alerts = fired[name] ?? assert.fail(`nothing is expected of ${name}`);
  return {
    name,
    interval: '30s',
    input_series: Object.entries(series).map(([each, values]) => ({ series: each, values })),
    promql_expr_test: [
      {
        expr: 'group by (alertname) (count_over_time(ALERTS{alertstate="firing"}[40m]))',
        eval_time: '37m30s',
        exp_samples: alerts.map((alert) => ({ labels: `{alertname="CsiProvisioner${alert}"}`, value: 1 })),
      },
    ],
  };
}

describe('the alert rules', { skip }, () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'alerts-'));
    await writeFile(path.join(folder, 'rules.json'), JSON.stringify({ groups: await ruleGroups() }));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const promtool = async (args: readonly string[], input?: string): Promise<void> => {
    const { code, output } = await runPromtool(program!, args, { cwd: folder, ...(input !== undefined && { input }) });
    assert.equal(code, 0, output);
  };

  test('are accepted by promtool, templates of their texts included', async () => {
    await promtool(['check', 'rules', '--lint=all', '--lint-fatal', 'rules.json']);
  });

  for (const { name } of stories) {
    const alerts = fired[name] ?? [];
    test(`fire for a sidecar that is "${name}": ${alerts.join(', ') || 'none'}`, async () => {
      const group = testGroup(await recording(name));
      const tests = { rule_files: ['rules.json'], evaluation_interval: '30s', tests: [group] };
      await writeFile(path.join(folder, `${name}.json`), JSON.stringify(tests));
      await promtool(['test', 'rules', `${name}.json`]);
    });
  }

  for (const cause of ['api-server', 'rejected']) {
    test(`fire for volumes that stay by the cause ${cause} as by an error of the driver`, async () => {
      const { name, series } = await recording('deletions-fail');
      const others = Object.entries(series).map(([each, values]) => [
        each.replace('"delete-error"', `"${cause}"`),
        values,
      ]);
      const group = testGroup({ name, series: Object.fromEntries(others) as RecordedSeries });
      const tests = { rule_files: ['rules.json'], evaluation_interval: '30s', tests: [group] };
      await writeFile(path.join(folder, `${cause}.json`), JSON.stringify(tests));
      await promtool(['test', 'rules', `${cause}.json`]);
    });
  }

  test('have each fired in a recording', async () => {
    const seen = new Set(Object.values(fired).flat());
    const known = (await alertRules()).map(({ alert }) => alert.replace(/^CsiProvisioner/, ''));
    assert.deepEqual([...seen].sort(), known.sort());
  });
});

test('promtool finds no fault with the metrics of a running sidecar', { skip }, async () => {
  const { code, output } = await runPromtool(program!, ['check', 'metrics'], { input: await livePage() });
  assert.deepEqual([code, output], [0, '']);
});
