import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRegistry } from '../../../../src/base/metrics.ts';
import {
  journalMetrics,
  type OpenRecords,
  reportReasons,
} from '../../../../src/provision/intent-journal/journal-metrics.ts';
import { noRecords } from '../../../../src/provision/intent-journal/intent-journal.ts';

const startMs = Date.parse('2026-11-01T10:00:00Z');
const none: OpenRecords = { byPhase: noRecords(), waiting: new Map(), oldestMs: Infinity };

function scene() {
  const registry = createRegistry();
  let nowMs = startMs;
  const metrics = journalMetrics(registry, { wallMs: () => nowMs });
  const lines = async (): Promise<string[]> => (await registry.metrics()).split('\n');
  return { metrics, lines, pass: (ms: number) => (nowMs += ms) };
}

describe('the metrics of the intent journal', () => {
  test('are there before the first record, as those of a journal that works', async () => {
    const { lines } = scene();
    const shown = await lines();
    for (const phase of ['create', 'unclear', 'delete', 'stuck']) {
      assert.ok(shown.includes(`intent_journal_records{phase="${phase}"} 0`), phase);
    }
    for (const reason of reportReasons) {
      assert.ok(shown.includes(`intent_journal_reported_total{reason="${reason}"} 0`), reason);
    }
    assert.ok(shown.includes('intent_journal_oldest_record_age_seconds 0'));
    assert.ok(shown.includes('intent_journal_protected 1'));
  });

  test('the age of the oldest record grows between scrapes, and ends with the record', async () => {
    const { metrics, lines, pass } = scene();
    metrics.open(() => ({ ...none, oldestMs: startMs }));
    pass(90_000);
    assert.ok((await lines()).includes('intent_journal_oldest_record_age_seconds 90'));
    metrics.open(() => none);
    assert.ok((await lines()).includes('intent_journal_oldest_record_age_seconds 0'));
  });

  test('a record of another machine whose clock is ahead has the age 0', async () => {
    const { metrics, lines } = scene();
    metrics.open(() => ({ ...none, oldestMs: startMs + 60_000 }));
    assert.ok((await lines()).includes('intent_journal_oldest_record_age_seconds 0'));
  });

  test('a write counts with its time and its bytes', async () => {
    const { metrics, lines } = scene();
    metrics.written(0.02, 1500);
    metrics.written(0.03, 500);
    const shown = await lines();
    assert.ok(shown.includes('intent_journal_write_duration_seconds_count 2'));
    assert.ok(shown.includes('intent_journal_write_duration_seconds_bucket{le="0.025"} 1'));
    assert.ok(shown.includes('intent_journal_written_bytes_total 2000'));
  });

  test('what happens to records is counted', async () => {
    const { metrics, lines } = scene();
    const waiting = new Map([['proof', 1]]);
    metrics.open(() => ({ ...none, byPhase: { ...noRecords(), create: 3, delete: 1, stuck: 2 }, waiting }));
    metrics.replayed();
    metrics.revoked();
    metrics.reported('unproved');
    metrics.size(4096);
    metrics.isProtected(false);
    metrics.unprotected();
    const shown = await lines();
    for (const line of [
      'intent_journal_records{phase="create"} 3',
      'intent_journal_records{phase="stuck"} 2',
      'intent_journal_waiting_records{reason="proof"} 1',
      'intent_journal_replayed_total 1',
      'intent_journal_revoked_total 1',
      'intent_journal_reported_total{reason="unproved"} 1',
      'intent_journal_bytes 4096',
      'intent_journal_protected 0',
      'intent_journal_unprotected_total 1',
    ]) {
      assert.ok(shown.includes(line), line);
    }
  });
});
