/** docs/metrics.md, the running program, and the families that users of the Go sidecar rely on. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { liveMetrics, type LiveMetrics } from './live-metrics.ts';
import { familiesOf } from './metrics-page.ts';
import { goFamilies, goProcessFamilies, ownFamilies } from './go-metrics.ts';

const page = path.join(import.meta.dirname, '../../docs/metrics.md');

interface Shape {
  type: string;
  stability: string | undefined;
  labels: string[];
  buckets: string[];
}

const shape = ({ type, stability, labels, buckets }: Shape): Shape => ({ type, stability, labels, buckets });

describe('the metrics of the running program', () => {
  let live: LiveMetrics;
  before(async () => {
    live = await liveMetrics();
  });

  test('stand in docs/metrics.md, each one, and nothing else does', async () => {
    const told = familiesOf(await readFile(page, 'utf8'));
    assert.deepEqual([...told.keys()].toSorted(), [...live.keys()].toSorted());
  });

  test('have the types, labels and buckets that docs/metrics.md tells', async () => {
    for (const [name, family] of familiesOf(await readFile(page, 'utf8'))) {
      assert.deepEqual(shape(family), shape(live.get(name) ?? family), name);
      assert.notEqual(family.meaning, '', `${name} has a meaning`);
    }
  });

  test('are those of the Go sidecar, as far as its parts are there', () => {
    for (const [name, type, stability, labels, buckets = ''] of goFamilies) {
      const want = { type, stability, labels: labels.toSorted(), buckets: buckets.split(' ').filter(Boolean) };
      const family = live.get(name);
      assert.ok(family, `${name} is there`);
      assert.deepEqual(shape(family), want, name);
    }
  });

  test('tell about the process what the Go sidecar tells', () => {
    for (const [name, type] of goProcessFamilies) assert.equal(live.get(name)?.type, type, name);
  });

  test('are otherwise our own', () => {
    const known = new Set([...goFamilies, ...goProcessFamilies].map(([name]) => name));
    const own = [...live.keys()].filter((name) => !known.has(name));
    assert.deepEqual(own.toSorted(), ownFamilies.toSorted());
  });
});
