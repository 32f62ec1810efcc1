/** The permit of a process that works beside others. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { type Permit, whenPermitted } from '../../../../src/base/permit.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { TwoClocks } from '../../../support/fakes/two-clocks.ts';
import { leaseResource, never, type Process, recordOf, Rig, silentListener, uidOf } from './rig.ts';

const shared = { exclusive: false };
const nothing = (): void => undefined;

function permitOf({ journal }: Process): Permit {
  return journal.permit ?? assert.fail('there is no permit');
}

describe('the permit of a journal without leader election', () => {
  test('is valid after each write for twenty seconds', async () => {
    await using rig = await Rig.start();
    const clock = new ManualClock();
    const a = await rig.open({ ...shared, clock });
    await clock.advance(19_000);
    assert.equal(permitOf(a).isValid, true);
    await clock.advance(2000);
    assert.equal(permitOf(a).isValid, false);
    await a.journal.put(recordOf(1), never);
    assert.equal(permitOf(a).isValid, true);
  });

  test('stays valid while records are open, and costs no write then', async () => {
    await using rig = await Rig.start();
    const clock = new ManualClock();
    const a = await rig.open({ ...shared, clock });
    await a.journal.put(recordOf(1), never);
    for (let second = 0; second < 60; second++) {
      await clock.advance(1000);
      assert.equal(permitOf(a).isValid, true);
      await whenPermitted(permitOf(a), never, nothing);
    }
    assert.ok(a.written.length <= 9, `${a.written.length} writes`);
  });

  test('is renewed by one write for all that wait', async () => {
    await using rig = await Rig.start();
    const clock = new ManualClock();
    const a = await rig.open({ ...shared, clock });
    await clock.advance(60_000);
    const before = a.written.length;
    await Promise.all(Array.from({ length: 50 }, () => whenPermitted(permitOf(a), never, nothing)));
    assert.equal(a.written.length - before, 1);
    assert.equal(permitOf(a).isValid, true);
  });

  for (const { title, sleep } of [
    { title: 'both clocks went on', sleep: (clock: ManualClock) => clock.jump(60_000) },
    {
      title: 'the monotonic clock stood still',
      sleep: (_clock: ManualClock, machine: TwoClocks) => {
        machine.wallOffsetMs += 60_000;
        return Promise.resolve();
      },
    },
  ]) {
    test(`shows after a pause in which ${title} what another process has taken over`, async () => {
      await using rig = await Rig.start();
      const clock = new ManualClock();
      const machine = new TwoClocks(clock);
      const a = await rig.open({ ...shared, writer: 'a', clock: machine });
      await a.journal.put(recordOf(1), never);
      const b = await rig.open({ ...shared, writer: 'b', clock: new ManualClock() });
      await b.journal.put(recordOf(1, { phase: 'unclear' }), never);
      const passing = sleep(clock, machine);
      assert.equal(permitOf(a).isValid, false);
      await whenPermitted(permitOf(a), never, () => {
        assert.deepEqual(a.heard, ['gone 01', 'foreign claim-1']);
      });
      await passing;
      assert.equal(rig.entry(1)?.writer, 'b');
    });
  }

  test('needs after a pause a write of each shard with own records, whichever was written first', async () => {
    await using rig = await Rig.start();
    const clock = new ManualClock();
    const a = await rig.open({ ...shared, writer: 'a', clock, groupMs: 0 });
    const numbers = Array.from({ length: 12 }, (_, n) => n + 1);
    const put = (n: number) =>
      a.journal.put(recordOf(n, { plan: { large: randomBytes(45_000).toString('hex') } }), never);
    const all = Promise.all(numbers.map(put));
    await clock.advance(10_000);
    await all;
    assert.ok(rig.api.list(leaseResource).length > 1);
    const b = await rig.open({ ...shared, writer: 'b' });
    await Promise.all(numbers.map((n) => b.journal.put(recordOf(n, { phase: 'unclear' }), never)));
    a.heard.length = 0;
    await clock.jump(60_000);
    await whenPermitted(permitOf(a), never, nothing);
    assert.deepEqual(
      a.heard.filter((line) => line.startsWith('gone')).sort(),
      numbers.map((n) => `gone ${uidOf(n).slice(-2)}`),
    );
  });

  test('is not needed where the journal cannot be written', async () => {
    await using rig = await Rig.start();
    const clock = new ManualClock();
    rig.fault({
      match: { verb: 'update', resource: 'leases' },
      action: { type: 'status', code: 403, reason: 'Forbidden', message: 'no' },
    });
    const a = rig.process({ ...shared, clock });
    const opened = a.journal.open(silentListener, never);
    await clock.until(() => a.protected.includes(false));
    await opened;
    await clock.advance(30_000);
    assert.equal(permitOf(a).isValid, true);
  });

  test('does not exist with leader election, which has its own', async () => {
    await using rig = await Rig.start();
    const a = await rig.open();
    assert.equal(a.journal.permit, undefined);
  });
});
