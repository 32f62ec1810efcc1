import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRegistry } from '../../../../src/base/metrics.ts';
import { CauseMetrics } from '../../../../src/cli/status/cause-metrics.ts';
import type { ClaimProgress, ReleasedVolume } from '../../../../src/provision/object-progress.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

/** When the manual clock begins. */
const beganMs = Date.UTC(2026, 0, 1);
const ago = (seconds: number): string => new Date(beganMs - seconds * 1000).toISOString();

function claim(changes: Partial<ClaimProgress>): ClaimProgress {
  return {
    namespace: 'ns',
    name: 'a',
    uid: 'u',
    className: 'c',
    createdAt: ago(60),
    step: 'queued',
    failures: 0,
    lastError: undefined,
    nextTryInMs: undefined,
    syncingForMs: undefined,
    wait: undefined,
    ...changes,
  };
}

function volume(changes: Partial<ReleasedVolume>): ReleasedVolume {
  return {
    name: 'v',
    claim: 'ns/a',
    className: 'c',
    releasedAt: ago(60),
    step: 'queued',
    failures: 0,
    lastError: undefined,
    nextTryInMs: undefined,
    waitText: undefined,
    ...changes,
  };
}

const failure = (secondsAgo: number, cause?: 'driver-error' | 'secret-missing') => ({
  message: 'e',
  kind: 'failed' as const,
  atMs: beganMs,
  sinceMs: beganMs - secondsAgo * 1000,
  ...(cause !== undefined && { cause }),
});

/** Metrics of these claims and volumes, and what a scrape has of one family. */
function metricsOf(claims: readonly ClaimProgress[], volumes: readonly ReleasedVolume[]) {
  const registry = createRegistry();
  const clock = new ManualClock();
  const metrics = new CauseMetrics({ registry, clock });
  let counts = 0;
  metrics.follow({
    *waitingClaims() {
      counts++;
      yield* claims;
    },
    *releasedVolumes() {
      yield* volumes;
    },
  });
  const family = async (name: string): Promise<Record<string, number>> => {
    const text = await registry.metrics();
    const samples = text.matchAll(new RegExp(`^${name}\\{cause="([^"]*)"\\} (\\S+)$`, 'gm'));
    return Object.fromEntries(Array.from(samples, ([, cause = '', value]): [string, number] => [cause, Number(value)]));
  };
  return { clock, family, counts: () => counts };
}

describe('metrics by cause', () => {
  test('count claims whose attempt failed apart from those that wait, with the age of the oldest', async () => {
    const { family } = metricsOf(
      [
        claim({}),
        claim({ createdAt: ago(90) }),
        claim({ step: 'waiting-for-consumer' }),
        claim({ step: 'retrying', lastError: failure(30, 'driver-error') }),
        claim({ step: 'retrying', lastError: failure(20, 'driver-error') }),
      ],
      [],
    );
    assert.deepEqual(await family('waiting_claims'), { 'in-progress': 2, 'waits-for-consumer': 1 });
    assert.deepEqual(await family('waiting_claims_oldest_seconds'), { 'in-progress': 90, 'waits-for-consumer': 60 });
    assert.deepEqual(await family('failing_claims'), { 'driver-error': 2 });
    assert.deepEqual(await family('failing_claims_oldest_seconds'), { 'driver-error': 30 });
  });

  test('leave out claims for which this instance does nothing', async () => {
    const { family } = metricsOf([claim({ step: 'idle' })], []);
    assert.deepEqual(await family('waiting_claims'), {});
  });

  test('name what keeps a claim now rather than what failed before: its class is gone, its volume is made', async () => {
    const { family } = metricsOf(
      [
        claim({ step: 'class-missing', lastError: failure(5, 'secret-missing') }),
        claim({ step: 'volume-made', lastError: failure(5, 'secret-missing') }),
      ],
      [],
    );
    assert.deepEqual(await family('failing_claims'), { 'class-not-found': 1 });
    assert.deepEqual(await family('waiting_claims'), { 'volume-made': 1 });
  });

  test('have the time since the release of a volume, else since its deletion fails', async () => {
    const { family } = metricsOf(
      [],
      [
        volume({}),
        volume({ step: 'idle', releasedAt: undefined }),
        volume({ step: 'shared-storage', releasedAt: ago(120) }),
        volume({ step: 'retrying', releasedAt: undefined, lastError: failure(30) }),
      ],
    );
    assert.deepEqual(await family('released_volumes_oldest_seconds'), {
      deleting: 60,
      attached: 0,
      'shared-storage': 120,
      'delete-error': 30,
    });
  });

  test('share one count for ten seconds', async () => {
    const { clock, family, counts } = metricsOf([], []);
    await family('waiting_claims');
    await clock.advance(9999);
    await family('waiting_claims');
    assert.equal(counts(), 1);
    await clock.advance(1);
    await family('waiting_claims');
    assert.equal(counts(), 2);
  });
});
