import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unreadyLeader } from '../../../src/run/leader-events.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';

const lease = { namespace: 'driver', name: 'd-example-com' };

test('a leader that is not ready says so after 30 seconds, once in ten minutes, also while the text counts seconds', async () => {
  const clock = new ManualClock({ turns: 3 });
  const lines: LogLine[] = [];
  const events: unknown[][] = [];
  const stop = new AbortController();
  let reason: string | undefined = 'nothing received about nodes for 180 seconds';
  const done = unreadyLeader({
    ready: {
      get unhealthyReason() {
        return reason;
      },
    },
    recorder: { event: (...given) => void events.push(given) },
    lease,
    clock,
    logger: recordedLogger(lines),
  }).follow?.(stop.signal);
  const pass = async (seconds: number): Promise<void> => {
    for (let passed = 0; passed < seconds; passed += 5) {
      await clock.advance(5000);
      reason = reason?.replace(/\d+/, (text) => String(Number(text) + 5));
    }
  };
  await pass(30);
  assert.equal(events.length, 0);
  await pass(5);
  assert.deepEqual(
    events.map(([about, type, name]) => [about, type, name]),
    [[{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...lease }, 'Warning', 'ProvisionerNotReady']],
  );
  assert.match(String(events[0]?.[3]), /^nothing received about nodes for \d+ seconds$/);
  await pass(590);
  assert.equal(events.length, 1);
  await pass(20);
  assert.equal(events.length, 2);
  assert.equal(lines.length, 2);
  reason = undefined;
  await pass(1200);
  assert.equal(events.length, 2, 'it is ready');
  stop.abort();
  await done;
});
