import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createRegistry } from '../../../src/base/metrics.ts';
import { exposition } from '../../../src/diagnostics/metrics-handler.ts';
import { addProcessMetrics } from '../../../src/diagnostics/process-metrics.ts';

async function values(root?: string): Promise<Map<string, number>> {
  const registry = createRegistry();
  addProcessMetrics(registry, root);
  const lines = (await exposition(registry)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.replace(/[ {].*/, ''), Number(line.split(' ').at(-1))]));
}

describe('addProcessMetrics', { skip: process.platform !== 'linux' && 'needs /proc' }, () => {
  test('shows true figures of this process', async () => {
    await new Promise(setImmediate); // the event loop has turned once
    const found = await values();
    const value = (name: string): number => found.get(name) ?? assert.fail(`no ${name}`);
    const startedAt = Date.now() / 1000 - process.uptime();
    assert.ok(Math.abs(value('process_start_time_seconds') - startedAt) < 5);
    assert.ok(Math.abs(value('process_cpu_seconds_total') - process.cpuUsage().user / 1e6) < 5);
    assert.ok(Math.abs(value('process_resident_memory_bytes') / process.memoryUsage.rss() - 1) < 0.5);
    assert.ok(value('process_virtual_memory_bytes') > value('process_resident_memory_bytes'));
    assert.ok(value('process_virtual_memory_max_bytes') >= value('process_virtual_memory_bytes'));
    assert.ok(value('process_open_fds') > 2);
    assert.ok(value('process_max_fds') >= value('process_open_fds'));
    assert.ok(value('process_network_receive_bytes_total') >= 0);
    assert.ok(value('process_network_transmit_bytes_total') >= 0);
    assert.equal(value('nodejs_version_info'), 1);
    assert.ok(value('nodejs_heap_size_total_bytes') >= value('nodejs_heap_size_used_bytes'));
    assert.ok(value('nodejs_heap_size_limit_bytes') > value('nodejs_heap_size_total_bytes'));
    assert.ok(value('nodejs_external_memory_bytes') > 0);
    assert.ok(value('nodejs_eventloop_active_seconds_total') > 0);
    assert.ok(value('nodejs_eventloop_idle_seconds_total') >= 0);
  });

  test('counters follow from scrape to scrape and never add up twice', async () => {
    const registry = createRegistry();
    addProcessMetrics(registry);
    await exposition(registry);
    const text = await exposition(registry);
    const seconds = Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]);
    const { user, system } = process.cpuUsage();
    assert.ok(seconds <= (user + system) / 1e6);
  });

  test('without /proc what needs it is left out', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'proc-'));
    try {
      const found = await values(empty);
      assert.deepEqual(
        [...found.keys()].filter((name) => name.startsWith('process_')),
        ['process_cpu_seconds_total', 'process_resident_memory_bytes'],
      );
    } finally {
      rmSync(empty, { recursive: true });
    }
  });
});
