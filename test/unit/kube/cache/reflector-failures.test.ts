import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TransportError } from '../../../../src/kube/client/api-error.ts';
import { errorFromStatus } from '../../../../src/kube/client/error-from-status.ts';
import { ReflectorFailures, ShortWatchError } from '../../../../src/kube/cache/reflector-failures.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';

const resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };

function rig() {
  const lines: LogLine[] = [];
  const reasons: string[] = [];
  const clock = new ManualClock();
  const logger = recordedLogger(lines);
  const onFailure = (reason: string): void => void reasons.push(reason);
  const failures = new ReflectorFailures({ logger, clock, random: () => 0, resource, onFailure });
  return { lines, reasons, clock, failures };
}

const status = (reason: string, code: number, retryAfterS?: number): Error =>
  errorFromStatus({ reason, code, message: reason }, { verb: 'watch', resource }, retryAfterS);
const reset = new TransportError('reset', { code: 'ECONNRESET' });

describe('ReflectorFailures', () => {
  test('logs and counts each kind of failure in its own way', () => {
    for (const { error, level, reason } of [
      { error: status('Expired', 410), level: 'debug', reason: 'Expired' },
      { error: status('NotFound', 404), level: 'warn', reason: 'NotFound' },
      { error: status('InternalError', 500), level: 'error', reason: 'InternalError' },
      { error: reset, level: 'error', reason: 'ECONNRESET' },
      { error: new ShortWatchError('short'), level: 'info', reason: 'ShortWatch' },
    ]) {
      const { lines, reasons, failures } = rig();
      failures.report(error);
      assert.deepEqual([lines.map((line) => line.level), reasons], [[level], [reason]]);
      assert.equal(failures.lastError, error);
    }
  });

  test('leaves a missing permission to its own report', () => {
    const { lines, reasons, failures } = rig();
    const forbidden = status('Forbidden', 403);
    failures.report(forbidden);
    assert.deepEqual([lines, reasons, failures.lastError], [[], [], forbidden]);
  });

  test('counts a failure that repeats each time and logs it once a minute', async () => {
    const { lines, reasons, clock, failures } = rig();
    failures.report(reset);
    await clock.advance(59_999);
    failures.report(reset);
    assert.deepEqual([lines.length, reasons.length], [1, 2]);
    await clock.advance(1);
    failures.report(reset);
    assert.deepEqual([lines.length, reasons.length], [2, 3]);
  });

  test('forgets the last failure at a success, whose time it keeps', async () => {
    const { clock, failures } = rig();
    const startMs = clock.monotonicMs();
    await clock.advance(5000);
    failures.report(reset);
    assert.equal(failures.lastSuccessMs, startMs);
    failures.succeeded();
    assert.deepEqual([failures.lastError, failures.lastSuccessMs - startMs], [undefined, 5000]);
  });

  test('waits one back-off step, or as long as the server asks for', async () => {
    const { clock, failures } = rig();
    const { signal } = new AbortController();
    for (const { retryAfterS, wantMs } of [
      { retryAfterS: undefined, wantMs: 800 },
      { retryAfterS: 1, wantMs: 1600 },
      { retryAfterS: 7, wantMs: 7000 },
    ]) {
      let done = false;
      const wait = failures.reportAndBackOff(status('TooManyRequests', 429, retryAfterS), signal).then(() => {
        done = true;
      });
      assert.equal(await clock.until(() => done), wantMs);
      await wait;
    }
  });
});
