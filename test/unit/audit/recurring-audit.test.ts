import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auditMetrics, RecurringAudit } from '../../../src/audit/recurring-audit.ts';
import type { Look } from '../../../src/audit/look.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { createRegistry } from '../../../src/base/metrics.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

const hourMs = 3_600_000;
const found: Look = {
  findings: [],
  persistentVolumes: 0,
  inUse: 0,
  elsewhere: 0,
  unchecked: 0,
  listed: 0,
  isListComplete: true,
  records: [],
  strangers: new Map(),
  incomplete: [],
  notes: [],
};

test('a leader audits within ten minutes, however long the interval is, and then after each interval', async () => {
  const clock = new ManualClock({ turns: 1 });
  const looks: number[] = [];
  const stop = new AbortController();
  const audit = new RecurringAudit({
    look: () => {
      looks.push(clock.monotonicMs());
      return Promise.resolve(found);
    },
    addFacts: () => Promise.resolve(),
    commandFor: () => undefined,
    intervalMs: 6 * hourMs,
    metrics: auditMetrics(createRegistry()),
    random: () => 0.5,
    clock,
    logger: silentLogger,
  });
  const running = audit.run(stop.signal);
  for (let minute = 0; minute < 13 * 60; minute++) await clock.advance(60_000);
  stop.abort(new Error('enough'));
  await running;
  assert.deepEqual(looks, [450_000, 450_000 + 6.75 * hourMs]);
});
