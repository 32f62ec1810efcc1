import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  allOf,
  NotPermittedError,
  passedMs,
  type Permit,
  whenPermitted,
  withRecheck,
} from '../../../src/base/permit.ts';

/** Valid after so many renewals. */
function permitAfter(renewals: number, onRenewal: () => void = () => undefined): Permit & { renewals: number } {
  return {
    renewals: 0,
    get isValid() {
      return this.renewals >= renewals;
    },
    renewed() {
      this.renewals++;
      onRenewal();
      return Promise.resolve();
    },
  };
}

describe('the time between two moments', () => {
  const from = { monotonicMs: 1000, wallMs: 5000 };

  for (const { title, to, want } of [
    { title: 'is what both clocks say', to: { monotonicMs: 1700, wallMs: 5700 }, want: 700 },
    {
      title: 'is that of the wall clock where the monotonic one stood still',
      to: { monotonicMs: 1000, wallMs: 65_000 },
      want: 60_000,
    },
    {
      title: 'is that of the monotonic clock where the wall clock was set back',
      to: { monotonicMs: 1700, wallMs: -3_600_000 },
      want: 700,
    },
    {
      title: 'is that of the monotonic clock where the wall clock stood still',
      to: { monotonicMs: 61_000, wallMs: 5000 },
      want: 60_000,
    },
  ]) {
    test(title, () => assert.equal(passedMs(from, to), want));
  }
});

describe('what needs a permit', () => {
  test('is sent before the function returns while the permit is valid', async () => {
    let sent = false;
    const sending = whenPermitted(permitAfter(0), undefined, () => {
      sent = true;
    });
    assert.equal(sent, true);
    await sending;
  });

  test('is sent without one where none is needed', async () => {
    assert.equal(await whenPermitted(undefined, undefined, () => 'sent'), 'sent');
  });

  test('is sent only after the renewal that makes it valid', async () => {
    const happened: string[] = [];
    await whenPermitted(
      permitAfter(2, () => happened.push('renewed')),
      undefined,
      () => void happened.push('sent'),
    );
    assert.deepEqual(happened, ['renewed', 'renewed', 'sent']);
  });

  test('is not sent when the permit cannot be renewed', async () => {
    const permit: Permit = { isValid: false, renewed: () => Promise.reject(new Error('the lease is lost')) };
    const send = (): never => assert.fail('it was sent');
    await assert.rejects(whenPermitted(permit, undefined, send), /the lease is lost/);
  });

  test('is not sent when what was looked at again after the renewal has changed', async () => {
    const permit = withRecheck(permitAfter(1), () => Promise.reject(new Error('it has changed')));
    const send = (): never => assert.fail('it was sent');
    await assert.rejects(whenPermitted(permit, undefined, send), /it has changed/);
  });

  test('is looked at again only after a renewal', async () => {
    const permit = withRecheck(permitAfter(0), () => assert.fail('it was looked at'));
    assert.equal(await whenPermitted(permit, undefined, () => 'sent'), 'sent');
  });

  test('that had to wait is sent only after a renewal if the permit is not valid any more', async () => {
    const happened: string[] = [];
    let isValid = true;
    const permit: Permit = {
      get isValid() {
        return isValid;
      },
      renewed: () => {
        happened.push('renewed');
        isValid = true;
        return Promise.resolve();
      },
    };
    await whenPermitted(permit, undefined, async (recheck) => {
      await Promise.resolve();
      if (happened.length === 0) isValid = false;
      recheck();
      happened.push('sent');
    });
    assert.deepEqual(happened, ['renewed', 'sent']);
  });

  test('ends with the error of another permit', async () => {
    const other = new NotPermittedError();
    await assert.rejects(
      whenPermitted(permitAfter(0), undefined, () => Promise.reject(other)),
      (error) => error === other,
    );
  });

  test('waits for all permits, and renews those that are not valid', async () => {
    const permits = [permitAfter(0), permitAfter(1)];
    const all = allOf(permits);
    assert.equal(all.isValid, false);
    await whenPermitted(all, undefined, () => undefined);
    assert.deepEqual(
      permits.map(({ renewals }) => renewals),
      [0, 1],
    );
  });
});
