import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  all,
  atMost,
  count,
  failed,
  isMissed,
  megabytes,
  noMoreThanPeer,
  nothing,
  seconds,
  share,
  tableText,
  yes,
  yesOrNo,
} from '../../scripts/grey/goals.ts';
import { parseOptions } from '../../scripts/grey/options.ts';
import { scenarios, shortNames } from '../../scripts/grey/scenarios.ts';

describe('the goal of a grey failure', () => {
  test('compares the limit with the rounded value that is shown', () => {
    const goal = atMost(25, 's');
    assert.equal(goal.holds(seconds(25.4), undefined), true);
    assert.equal(goal.holds(seconds(25.6), undefined), false);
    assert.equal(atMost(1, 's').holds(seconds(1.04), undefined), true);
    assert.equal(atMost(1, 's').holds(seconds(1.06), undefined), false);
    assert.equal(atMost(150, 'MB').holds(megabytes(150.4), undefined), true);
  });

  test('is missed by what did not happen in time and by a failure, whatever the goal is', () => {
    for (const goal of [atMost(25, 's'), all, yes, noMoreThanPeer]) {
      assert.equal(goal.holds(seconds(Infinity, 60), seconds(1)), false);
      assert.equal(goal.holds(failed(new Error('no cluster')), undefined), false);
    }
  });

  test('of all, or of yes, is reached only by all, or by yes', () => {
    assert.equal(all.holds(share(21, 21), undefined), true);
    assert.equal(all.holds(share(20, 21), undefined), false);
    assert.equal(yes.holds(yesOrNo(true, 'after 3 s'), undefined), true);
    assert.equal(yes.holds(yesOrNo(false), undefined), false);
  });

  test('is neither reached nor missed if there is nothing to compare', () => {
    assert.equal(atMost(25, 's').holds(nothing('no such request'), undefined), undefined);
    assert.equal(noMoreThanPeer.holds(count(5), undefined), undefined);
    assert.equal(noMoreThanPeer.holds(count(5), failed(new Error('it does not start'))), undefined);
    assert.equal(noMoreThanPeer.holds(count(5), count(5)), true);
    assert.equal(noMoreThanPeer.holds(count(6), count(5)), false);
  });
});

describe('the table of grey failures', () => {
  const lines = [
    { what: 'a claim waits', goal: atMost(2, 's'), ours: seconds(Infinity, 120), peer: seconds(0.14) },
    { what: 'events', goal: noMoreThanPeer, ours: count(3113), peer: count(3115) },
    { what: 'older watches', goal: atMost(40, 's'), ours: undefined, peer: undefined },
  ];

  test('marks the goals that ours has missed, but none that was not measured', () => {
    assert.deepEqual(lines.map(isMissed), [true, false, false]);
    assert.equal(
      tableText(lines, { hasPeer: true }),
      `what happens   goal                     ours                            peer
-------------  -----------------------  ------------------------------  -----
a claim waits  2 s at most              not within 120 s (not reached)  0.1 s
events         no more than the peer's  3,113                           3,115
older watches  40 s at most             -                               -`,
    );
  });

  test('has no column for the peer if there is none', () => {
    assert.equal(
      tableText([{ what: 'lives', goal: yes, ours: yesOrNo(true), peer: undefined }], { hasPeer: false }),
      'what happens  goal  ours\n------------  ----  ----\nlives         yes   yes',
    );
  });
});

describe('the command line of grey failures', () => {
  const known = [
    { name: 'a', about: '' },
    { name: 'b', about: '' },
    { name: 'c', about: '' },
  ];

  test('runs all scenarios on the real control plane by default', () => {
    const { names, target, peer, ours } = parseOptions([], known, ['a']);
    assert.deepEqual([names, target, peer], [['a', 'b', 'c'], 'kubernetes', undefined]);
    assert.match(ours.command, /dist\/csi-provisioner\.js$/);
  });

  test('picks scenarios by name, in the order of the table', () => {
    assert.deepEqual(parseOptions(['--only', 'c,a'], known, ['a']).names, ['a', 'c']);
    assert.deepEqual(parseOptions(['--short', '--only=b'], known, ['a']).names, ['b']);
  });

  test('has a short form with some of the scenarios, on the sandbox', () => {
    const { names, target } = parseOptions(['--short', '--cluster=kubernetes'], known, ['a']);
    assert.deepEqual([names, target], [['a'], 'sandbox']);
    const all = scenarios.map(({ name }) => name);
    assert.deepEqual(
      shortNames.filter((name) => !all.includes(name)),
      [],
    );
  });

  test('splits the flags of the peer at spaces', () => {
    const { peer } = parseOptions(['--peer=some/sidecar', '--peer-flags=--a=1  --b'], known, []);
    assert.deepEqual(peer, { name: 'peer', command: 'some/sidecar', flags: ['--a=1', '--b'] });
  });
});
