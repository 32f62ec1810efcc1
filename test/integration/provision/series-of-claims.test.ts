/** Users choose the classes and sources of claims: the number of series in the metrics is limited all the same. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { createRegistry } from '../../../src/base/metrics.ts';
import { type DiagnosticsServer, startDiagnosticsServer } from '../../../src/diagnostics/http-server.ts';
import { metricsHandler } from '../../../src/diagnostics/metrics-handler.ts';
import { type ControllerMetrics, prometheusMetrics } from '../../../src/provision/controller-metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { annotation, Rig } from './rig.ts';

const hourMs = 3_600_000;
const made = 'controller_persistentvolumeclaim_provision_total';
const failed = 'controller_persistentvolumeclaim_provision_failed_total';

/** Serves the metrics. */
async function served(clock = new ManualClock()): Promise<{ metrics: ControllerMetrics; server: DiagnosticsServer }> {
  const registry = createRegistry();
  const metrics = prometheusMetrics(registry, { clock });
  const server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
  server.handle('/metrics', metricsHandler(registry));
  return { metrics, server };
}

/** The samples of the `controller_*` families as a scraper sees them: the values by `family{labels}`. */
async function scrape({ port }: DiagnosticsServer): Promise<Map<string, number>> {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = page.split('\n').filter((line) => line.startsWith('controller_'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

describe('series of claims', () => {
  test('of classes that do not exist are few, and every attempt is counted', async () => {
    const { metrics, server } = await served();
    await using _server = server;
    await using rig = await Rig.prepare({ controller: { metrics } });
    rig.addClass('real');
    const annotations = { [annotation.provisioner]: 'drv' };
    for (let index = 0; index < 150; index++)
      rig.addClaim(`a${index}`, { annotations, storageClassName: `no-${index}` });
    rig.addClaim('ours', { annotations, storageClassName: 'real' });
    await rig.start();
    await eventually(async () => {
      const counts = [...(await scrape(server))].filter(([name]) => name.startsWith(failed) || name.startsWith(made));
      assert.equal(counts.reduce((sum, [, value]) => sum + value, 0), 151); // prettier-ignore
    });
    const samples = await scrape(server);
    const failures = [...samples].filter(([name]) => name.startsWith(failed));
    assert.equal(failures.length, 101);
    assert.equal(failures.reduce((sum, [, value]) => sum + value, 0), 150); // prettier-ignore
    assert.equal(samples.get(`${failed}{class="no-0",source=""}`), 1);
    assert.equal(samples.get(`${failed}{class="(other)",source=""}`), 50);
    assert.equal(samples.get('controller_persistentvolumeclaim_provision_total{class="real",source=""}'), 1);
  });

  test('of 100,000 unknown classes and kinds of sources are few', async () => {
    const { metrics, server } = await served();
    await using _server = server;
    for (let index = 0; index < 100_000; index++) {
      metrics.provisionFailed({ class: `no-${index}`, source: '' });
      metrics.provisionFailed({ class: '', source: `Kind${index}` });
    }
    metrics.provisionFailed({ class: '', source: 'x'.repeat(1000) });
    const samples = await scrape(server);
    assert.equal(samples.size, 101 + 21);
    assert.equal([...samples.values()].reduce((sum, value) => sum + value), 200_001); // prettier-ignore
  });

  test('of classes that exist have their names, however many there are', async () => {
    const { metrics, server } = await served();
    await using _server = server;
    metrics.followClasses?.((name) => name.startsWith('real-'));
    for (let index = 0; index < 500; index++)
      metrics.provisionFailed({ class: `real-${index}`, source: 'VolumeSnapshot' });
    assert.equal((await scrape(server)).size, 500);
  });

  test('of a class that was deleted are removed after an hour without a change, and not before', async () => {
    const clock = new ManualClock();
    const { metrics, server } = await served(clock);
    await using _server = server;
    let existing = new Set(['kept', 'gone']);
    metrics.followClasses?.((name) => existing.has(name));
    const classes = async (): Promise<string[]> => {
      const names = [...(await scrape(server)).keys()].map((name) => /class="([^"]*)"/.exec(name)?.[1] ?? '');
      return [...new Set(names)].toSorted();
    };
    for (const name of existing) {
      metrics.provisioned({ class: name, source: 'PersistentVolumeClaim' }, 1);
      metrics.deleted({ class: name }, 1);
    }
    await clock.advance(5 * hourMs);
    assert.deepEqual(await classes(), ['gone', 'kept']);
    existing = new Set(['kept']);
    await clock.advance(hourMs - 1000);
    metrics.deleteFailed({ class: 'gone' });
    await clock.advance(hourMs - 1000);
    assert.deepEqual(await classes(), ['gone', 'kept']);
    await clock.advance(1000);
    assert.deepEqual(await classes(), ['kept']);
    metrics.deleted({ class: 'gone' }, 1);
    assert.deepEqual(await classes(), ['gone', 'kept']);
  });
});
