import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { whenPermitted } from '../../../src/base/permit.ts';
import { LeaseLostError } from '../../../src/kube/election/leader-elector.ts';
import { TwoClocks } from '../../support/fakes/two-clocks.ts';
import { type Candidate, LeaseServer } from './lease-server.ts';

interface Leader {
  leases: LeaseServer;
  clock: TwoClocks;
  leader: Candidate;
  /** Renewals since it leads. */
  renewals: () => number;
  [Symbol.asyncDispose]: () => Promise<void>;
}

/** A leader whose machine has two clocks. */
async function lead(): Promise<Leader> {
  const leases = await LeaseServer.start();
  const clock = new TwoClocks(leases.clock);
  const leader = leases.elector('a', { clock, retryPeriodMs: 5000 }).run();
  await leases.clock.until(() => leader.leads);
  const before = leases.writesOf('a').length;
  return {
    leases,
    clock,
    leader,
    renewals: () => leases.writesOf('a').length - before,
    [Symbol.asyncDispose]: () => leases[Symbol.asyncDispose](),
  };
}

describe('the permit of a leader', () => {
  test('is valid for as long as the lease is renewed, and costs no request', async () => {
    await using scene = await lead();
    const { leases, leader } = scene;
    for (let second = 0; second < 60; second++) {
      await leases.clock.advance(1000);
      assert.equal(await whenPermitted(leader.elector.permit, undefined, () => 'sent'), 'sent');
    }
    assert.equal(scene.renewals(), 12);
  });

  test('is not valid before it leads, and not after its work', async () => {
    await using scene = await lead();
    const { leases, leader } = scene;
    const standby = leases.elector('b').run();
    await leases.clock.advance(3000);
    assert.equal(standby.elector.permit.isValid, false);
    leader.finish();
    await leases.clock.until(() => leader.outcome !== undefined);
    assert.equal(leader.elector.permit.isValid, false);
    await assert.rejects(leader.elector.permit.renewed(undefined), LeaseLostError);
  });

  for (const { title, jump } of [
    {
      title: 'after a pause in which both clocks went on',
      jump: ({ leases }: Leader) => leases.clock.jump(10_500),
    },
    {
      title: 'after a sleep of the machine in which the monotonic clock stood still',
      jump: ({ clock }: Leader) => {
        clock.wallOffsetMs += 10_500;
        return Promise.resolve();
      },
    },
  ]) {
    test(`is renewed first, ${title}`, async () => {
      await using scene = await lead();
      const { leases, leader } = scene;
      const sentAfter: number[] = [];
      const passing = jump(scene);
      assert.equal(leader.elector.permit.isValid, false);
      const sending = whenPermitted(leader.elector.permit, undefined, () => {
        sentAfter.push(scene.renewals());
      });
      await passing;
      await leases.clock.settle();
      await sending;
      assert.deepEqual(sentAfter, [1]);
      assert.equal(leader.leads, true);
    });
  }

  test('stays valid when the wall clock is set back', async () => {
    await using scene = await lead();
    scene.clock.wallOffsetMs -= 3_600_000;
    assert.equal(scene.leader.elector.permit.isValid, true);
    await scene.leases.clock.advance(20_000);
    assert.equal(scene.leader.elector.permit.isValid, true);
  });

  test('counts from the moment a renewal was sent, however late its answer', async () => {
    await using scene = await lead();
    const { leases, leader } = scene;
    leases.delayAnswers('a', 4000);
    await leases.clock.advance(9000); // sent after 5 s
    assert.equal(leader.elector.permit.isValid, true);
    leases.cutOff('a');
    await leases.clock.advance(5900);
    assert.equal(leader.elector.permit.isValid, true);
    await leases.clock.advance(200);
    assert.equal(leader.elector.permit.isValid, false);
    assert.equal(leader.leads, true, 'the lease itself is still held');
  });

  test('cannot be had any more once another has led while the machine slept', async () => {
    await using scene = await lead();
    const { leases, clock, leader } = scene;
    leases.edit({ holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 1 });
    clock.wallOffsetMs += 60_000;
    const sending = whenPermitted(leader.elector.permit, undefined, () => assert.fail('it was sent'));
    await assert.rejects(sending, LeaseLostError);
    assert.equal(leader.leads, false);
  });

  test('cannot be had any more once another has led and released the lease while the machine slept', async () => {
    await using scene = await lead();
    const { leases, clock, leader } = scene;
    leases.edit({ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 1 });
    clock.wallOffsetMs += 60_000;
    const sending = whenPermitted(leader.elector.permit, undefined, () => assert.fail('it was sent'));
    await assert.rejects(sending, /nobody holds the lease/);
    assert.equal(leases.spec?.holderIdentity, '', 'it is not taken again');
  });

  test('waits no longer than its signal allows', async () => {
    await using scene = await lead();
    const { leases, clock, leader } = scene;
    leases.cutOff('a');
    clock.wallOffsetMs += 60_000;
    const abort = new AbortController();
    const sending = whenPermitted(leader.elector.permit, abort.signal, () => assert.fail('it was sent'));
    abort.abort(new Error('the process ends'));
    await assert.rejects(sending, /the process ends/);
  });
});
