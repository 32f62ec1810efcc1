import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WaitingClaims } from '../../../../src/csi/node-deployment/waiting-claims.ts';
import type { PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { makeClaim } from '../../provision/claims-and-volumes.ts';

const patienceMs = 30_000;

const selecting = (node: string): PersistentVolumeClaim =>
  makeClaim({ uid: 'u', annotations: { 'volume.kubernetes.io/selected-node': node } });

/** A claim that waits for its node, and messages of the events. */
function waiting() {
  const clock = new ManualClock();
  const events: string[] = [];
  const cached = [selecting('n1')];
  const waits = new WaitingClaims({
    claims: { list: () => cached, get: () => cached[0], byIndex: () => cached },
    recorder: { event: (_about, _type, _reason, message) => void events.push(message) },
    clock,
  });
  waits.note(cached[0]!, 'it waits', patienceMs);
  return { clock, events, cached, waits };
}

describe('a claim that is left to others', () => {
  test('has an event once nobody has taken it for long enough', async () => {
    const { clock, events } = waiting();
    await clock.advance(patienceMs - 1);
    assert.deepEqual(events, []);
    await clock.advance(1);
    assert.deepEqual(events, ['it waits']);
  });

  for (const { title, now } of [
    { title: 'is gone', now: [] },
    { title: 'has its volume', now: [makeClaim({ uid: 'u' }, { volumeName: 'v' })] },
    { title: 'waits for another node', now: [selecting('n2')] },
    { title: 'waits for no node any more', now: [makeClaim({ uid: 'u' })] },
  ]) {
    test(`has none where it ${title} by then`, async () => {
      const { clock, events, cached } = waiting();
      cached.splice(0, 1, ...now);
      await clock.advance(patienceMs);
      assert.deepEqual(events, []);
    });
  }

  test('has that of the latest message alone', async () => {
    const { clock, events, cached, waits } = waiting();
    await clock.advance(patienceMs - 1);
    waits.note(cached[0]!, 'it waits for something else', patienceMs);
    await clock.advance(patienceMs);
    assert.deepEqual(events, ['it waits for something else']);
  });
});
