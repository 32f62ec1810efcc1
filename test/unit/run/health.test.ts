import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ForbiddenError } from '../../../src/kube/client/api-error.ts';
import { persistentVolumes } from '../../../src/provision/objects.ts';
import { type AnyInformer, checkCaches, Health } from '../../../src/run/health.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

describe('Health', () => {
  test('is well without checks and while all pass', () => {
    const health = new Health();
    assert.equal(health.unhealthyReason, undefined);
    health.add(() => undefined);
    assert.equal(health.unhealthyReason, undefined);
  });

  test('reports everything that is wrong, until a check is taken back', () => {
    const health = new Health();
    health.add(() => 'the driver does not answer');
    const remove = health.add(() => 'no news of volumes');
    assert.equal(health.unhealthyReason, 'the driver does not answer; no news of volumes');
    remove();
    assert.equal(health.unhealthyReason, 'the driver does not answer');
  });
});

test('a filled cache that may not be followed any more is reported once it is forbidden again after 15 seconds, and no more once it may', async () => {
  const clock = new ManualClock();
  const ready = new Health();
  const request = { verb: 'watch', resource: persistentVolumes };
  const message = 'volumes is forbidden: User "u" cannot watch';
  const forbidden = (): Error => new ForbiddenError({ code: 403, message }, request);
  const informer = { hasSynced: true, lastSuccessMs: 0, lastByteMs: 0, maxSilenceMs: 240_000, lastError: undefined };
  const changing: Omit<AnyInformer, 'lastError'> & { lastError: Error | undefined } = {
    ...informer,
    run: () => Promise.resolve(),
    synced: Promise.resolve(),
  };
  using _checks = checkCaches({ ready, clock }, { volumes: changing });
  assert.equal(ready.unhealthyReason, undefined);
  changing.lastError = forbidden();
  assert.equal(ready.unhealthyReason, undefined, 'a server that has just started may forbid everything');
  await clock.advance(60_000);
  assert.equal(ready.unhealthyReason, undefined, 'after a long pause nobody has asked again');
  changing.lastError = forbidden();
  assert.equal(ready.unhealthyReason, `nothing received about volumes for 60 seconds: ${message}`);
  changing.lastError = undefined;
  assert.equal(ready.unhealthyReason, undefined);
});
