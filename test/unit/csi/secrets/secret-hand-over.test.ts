import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SecretString } from '../../../../src/base/secret-string.ts';
import { SecretHandOver } from '../../../../src/csi/secrets/secret-hand-over.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

describe('SecretHandOver', () => {
  const secrets = { user: SecretString.fromBytes(Buffer.from('hush')) };

  test('gives secrets once, and only for the very object', () => {
    const handOver = new SecretHandOver(new ManualClock());
    const plan = { name: 'a' };
    handOver.give(plan, secrets);
    assert.equal(handOver.take({ ...plan }), undefined);
    assert.equal(handOver.take(plan), secrets);
    assert.equal(handOver.take(plan), undefined);
  });

  test('gives no secrets that were read more than two seconds ago', async () => {
    const clock = new ManualClock({ turns: 1 });
    const handOver = new SecretHandOver(clock);
    const [fresh, old] = [{}, {}];
    handOver.give(old, secrets);
    await clock.advance(1);
    handOver.give(fresh, secrets);
    await clock.advance(2000);
    assert.equal(handOver.take(old), undefined);
    assert.equal(handOver.take(fresh), secrets);
  });
});
