import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { digested, headline } from '../../../src/diagnostics/status-page/status-view.ts';
import type { StatusReport } from '../../../src/diagnostics/status-page/status-report.ts';
import {
  reportedAtMs,
  reportedClaim,
  reportedVolume,
  statusReport,
  withReleased,
} from '../../support/fakes/status-reports.ts';

const quiet = statusReport([]);
const failing = statusReport([reportedClaim(0), reportedClaim(1)]);
const drained = { message: 'waiting for the end of a drain', kind: 'waiting', atMs: reportedAtMs } as const;
const onlyWaiting = statusReport([
  reportedClaim(0, { step: 'waiting', failures: 3, lastError: drained }),
  reportedClaim(1, { step: 'syncing', failures: 3, lastError: drained }),
  reportedClaim(2, { step: 'not-handed-over', failures: 0, lastError: undefined }),
]);
const released = withReleased(quiet, { total: 5, failing: 3, first: [reportedVolume(0)] });
const { work } = quiet;
const standby = { role: { name: 'standby', sinceMs: 0 }, work: undefined } as const;
const stalled = { apiServer: { failingSinceMs: reportedAtMs - 42_000 } };

describe('the headline', () => {
  const cases: [string, StatusReport, string, string][] = [
    ['nothing is wrong', quiet, 'Healthy', ''],
    ['claims fail', failing, '1 of 2 waiting claims failing, 3 records of the journal stuck', '! 1 failing, 3 stuck'],
    ['claims wait for something else', onlyWaiting, '3 records of the journal stuck', '! 3 stuck'],
    ['deletions alone fail', released, 'The deletion of 3 of 5 released volumes failing', '! 3 failing'],
    [
      'both fail',
      withReleased(failing, { total: 2000, failing: 2000, first: [] }),
      '1 of 2 waiting claims failing, the deletion of 2,000 of 2,000 released volumes failing, 3 records of the journal stuck',
      '! 2,001 failing, 3 stuck',
    ],
    [
      'the journal cannot be written',
      { ...quiet, work: work && { ...work, isJournalRefused: true } },
      'The intent journal cannot be written',
      '! no journal',
    ],
    [
      'the driver is away',
      { ...released, ...stalled, driver: { ...quiet.driver, connected: false } },
      'The driver does not respond',
      '! driver away',
    ],
    [
      'the API server stalls',
      { ...released, ...stalled, unhealthyReason: 'claims: silent' },
      'The API server has not responded for 42 s',
      '! API server away',
    ],
    [
      'the caches are not filled',
      { ...quiet, unhealthyReason: 'claims: not filled' },
      'Not ready: claims: not filled',
      '! not ready',
    ],
    [
      'it is a standby',
      { ...quiet, ...standby },
      'Standby: this instance waits for the lease of the leader',
      'standby',
    ],
    [
      'it is a standby that may not use the lease',
      { ...quiet, ...standby, unhealthyReason: 'not permitted to hold the lease ns/a' },
      'Not ready: not permitted to hold the lease ns/a',
      '! not ready',
    ],
    [
      'another process has its identity',
      { ...quiet, ...standby, role: { ...standby.role, waitsFor: 'another process' } },
      'Standby: this instance waits for another process',
      'standby',
    ],
    ['a leader has not begun', { ...quiet, work: undefined }, 'Starting', 'starting'],
  ];
  for (const [name, report, text, mark] of cases) {
    test(`is true and short when ${name}`, async () => {
      const isGood = !mark.startsWith('!');
      assert.deepEqual(headline(await digested(report)), { text, mark, isGood });
    });
  }
});

describe('the most frequent errors of a report', () => {
  test('leave out what claims only wait for', async () => {
    const failed = reportedClaim(0);
    const { digest } = await digested(statusReport([failed, ...(onlyWaiting.work?.claims ?? [])]));
    assert.deepEqual(
      digest.reasons.map(({ count }) => count),
      [1],
    );
    assert.equal(digest.failing, 1);
  });
});
