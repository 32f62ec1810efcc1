import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type CoreEvent,
  EventCorrelator,
  type EventDecision,
  type EventType,
} from '../../../../src/kube/events/event-correlator.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

interface Told {
  message: string;
  type?: EventType;
  reason?: string;
  uid?: string;
  /** Default `ns`; empty: the object is of the cluster. */
  namespace?: string;
}

/** A correlator, and events for it that each have a name of their own. */
function rig(): { clock: ManualClock; tell: (told: Told) => EventDecision; correlator: EventCorrelator } {
  const clock = new ManualClock({ turns: 1 });
  let names = 0;
  const newName = (): string => `event-${++names}`;
  const correlator = new EventCorrelator({ clock, newName });
  const tell = ({
    message,
    type = 'Warning',
    reason = 'ProvisioningFailed',
    uid = 'u1',
    namespace = 'ns',
  }: Told): EventDecision => {
    const now = new Date(clock.wallMs()).toISOString();
    const event: CoreEvent = {
      metadata: { namespace: namespace === '' ? 'default' : namespace, name: newName() },
      involvedObject: { kind: 'PersistentVolumeClaim', ...(namespace !== '' && { namespace }), name: 'c', uid },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: 'd.example.com' },
      reportingComponent: 'd.example.com',
      reportingInstance: '',
    };
    return correlator.decide(event);
  };
  return { clock, tell, correlator };
}

describe('EventCorrelator', () => {
  test('the same event five times is one with a count, a name and a first time', async () => {
    const { clock, tell } = rig();
    const decisions: EventDecision[] = [];
    for (let i = 0; i < 5; i++) {
      decisions.push(tell({ message: 'no space' }));
      await clock.advance(1000);
    }
    assert.deepEqual(
      decisions.map(({ action, event }) => [action, event.count, event.metadata.name, event.firstTimestamp]),
      [1, 2, 3, 4, 5].map((count) => [count === 1 ? 'create' : 'patch', count, 'event-1', '2026-01-01T00:00:00.000Z']),
    );
    assert.equal(new Set(decisions.map(({ event }) => event.lastTimestamp)).size, 5);
  });

  test('another message, reason, type or uid is another event', () => {
    const { tell } = rig();
    tell({ message: 'a' });
    for (const other of [
      { message: 'b' },
      { message: 'a', reason: 'Provisioning' },
      { message: 'a', type: 'Normal' },
      { message: 'a', uid: 'u2' },
    ] as const)
      assert.deepEqual([tell(other).action, tell(other).event.count], ['create', 2]);
  });

  test('twelve different messages are nine events and one combined with count 3', () => {
    const { tell } = rig();
    const decisions = Array.from({ length: 12 }, (_, i) => tell({ message: `error ${i}` }));
    assert.deepEqual(
      decisions.map(({ action, event }) => [action, event.count]),
      [...Array.from({ length: 10 }, () => ['create', 1]), ['patch', 2], ['patch', 3]],
    );
    assert.deepEqual(
      decisions.slice(8).map(({ event }) => event.message),
      [
        'error 8',
        '(combined from similar events): error 9',
        '(combined from similar events): error 10',
        '(combined from similar events): error 11',
      ],
    );
    const combined = decisions.slice(9);
    assert.equal(new Set(combined.map(({ event }) => event.metadata.name)).size, 1);
    assert.ok(combined.every(({ event }) => event.reportingComponent === ''));
    assert.ok(!decisions.slice(0, 9).some(({ event }) => event.metadata.name === combined[0]?.event.metadata.name));
  });

  test('more than ten quiet minutes end a group', async () => {
    const { clock, tell } = rig();
    for (let i = 0; i < 9; i++) tell({ message: `error ${i}` });
    await clock.advance(600_000);
    assert.match(tell({ message: 'error 9' }).event.message, /^\(combined/);
    await clock.advance(600_001);
    assert.equal(tell({ message: 'error 10' }).event.message, 'error 10');
  });

  test('of 40 alike within a second 25 are written, and five minutes later the count shows them all', async () => {
    const { clock, tell } = rig();
    const actions = Array.from({ length: 40 }, () => tell({ message: 'no space' }).action);
    assert.equal(actions.filter((action) => action !== 'drop').length, 25);
    assert.deepEqual(new Set(actions.slice(25)), new Set(['drop']));
    await clock.advance(300_000);
    const next = tell({ message: 'no space' });
    assert.deepEqual([next.action, next.event.count], ['patch', 41]);
    assert.equal(tell({ message: 'no space' }).action, 'drop');
  });

  test('each type of an object has its own budget, whatever the reason', () => {
    const { tell } = rig();
    for (let i = 0; i < 25; i++) tell({ message: 'no space' });
    assert.equal(tell({ message: 'x', reason: 'Other' }).action, 'drop');
    assert.equal(tell({ message: 'x', type: 'Normal' }).action, 'create');
    assert.equal(tell({ message: 'x', uid: 'u2' }).action, 'create');
  });

  test('what the server answered is what later events build on', () => {
    const { tell, correlator } = rig();
    const { key } = tell({ message: 'no space' });
    correlator.remember(key, { name: 'as-stored', count: 7, firstTimestamp: 'then' });
    const { action, event } = tell({ message: 'no space' });
    assert.deepEqual(
      [action, event.count, event.metadata.name, event.firstTimestamp],
      ['patch', 8, 'as-stored', 'then'],
    );
  });

  test('after 4096 others an event is new again', () => {
    const { tell } = rig();
    tell({ message: 'first', uid: 'old', type: 'Normal' });
    for (let i = 0; i < 4096; i++) tell({ message: 'x', uid: `u${i}`, type: 'Normal' });
    assert.equal(tell({ message: 'first', uid: 'old', type: 'Normal' }).action, 'create');
  });

  test('of thousands of failures in one namespace 300 are written immediately, and then 5 per second', async () => {
    const { tell, clock } = rig();
    const written = (from: number, count: number): number =>
      Array.from({ length: count }, (_, i) => tell({ message: 'x', uid: `u${from + i}` })).filter(
        ({ action }) => action === 'create',
      ).length;
    assert.equal(written(0, 1000), 300);
    assert.equal(tell({ message: 'x', uid: 'normal', type: 'Normal' }).action, 'drop');
    await clock.advance(2000);
    assert.equal(written(1000, 1000), 10);
  });

  test('repetitions of a failure leave half of the limit to new failures', () => {
    const { tell } = rig();
    const tellAll = (count: number): EventDecision[] =>
      Array.from({ length: count }, (_, i) => tell({ message: 'x', uid: `u${i}` }));
    assert.equal(tellAll(100).filter(({ action }) => action === 'create').length, 100);
    assert.equal(tellAll(100).filter(({ action }) => action === 'patch').length, 51);
    assert.equal(tell({ message: 'x', uid: 'new' }).action, 'create');
  });

  test('a failure that was dropped counts as new the next time', async () => {
    const { tell, clock } = rig();
    for (let i = 0; i < 300; i++) tell({ message: 'x', uid: `u${i}` });
    assert.equal(tell({ message: 'x', uid: 'late' }).action, 'drop');
    await clock.advance(1000);
    const { action, event } = tell({ message: 'x', uid: 'late' });
    assert.deepEqual([action, event.count], ['create', 1]);
  });

  test('the failures of many namespaces hide neither those of a quiet one, nor those of volumes', () => {
    const { tell } = rig();
    for (let attempt = 0; attempt < 20; attempt++) {
      for (let index = 0; index < 2000; index++)
        tell({ message: 'x', namespace: `ns-${index % 20}`, uid: `u${index}-${attempt}` });
    }
    for (let index = 0; index < 400; index++) tell({ message: 'x', namespace: 'default', uid: `d${index}` });
    assert.equal(tell({ message: 'x', namespace: 'ns-1', uid: 'new' }).action, 'drop');
    assert.equal(tell({ message: 'x', namespace: 'quiet', uid: 'q' }).action, 'create');
    assert.equal(tell({ message: 'x', namespace: '', uid: 'pv' }).action, 'create');
    assert.equal(tell({ message: 'x', namespace: '', uid: 'pv', type: 'Normal' }).action, 'create');
  });

  test('of failures in twenty namespaces 1,400 are written immediately, and then 50 per second', async () => {
    const { tell, clock } = rig();
    const written = (from: number): number =>
      Array.from({ length: 6000 }, (_, index) =>
        tell({ message: 'x', namespace: `ns-${index % 20}`, uid: `u${from + index}` }),
      ).filter(({ action }) => action === 'create').length;
    assert.equal(written(0), 1400, 'twenty of each, and a thousand of all together');
    await clock.advance(1000);
    assert.equal(written(6000), 50);
  });

  test('repetitions in many namespaces leave half of the limit of all together to new failures', () => {
    const { tell } = rig();
    const tellAll = (): EventDecision[] =>
      Array.from({ length: 800 }, (_, index) =>
        tell({ message: 'x', namespace: `ns-${index % 20}`, uid: `u${index}` }),
      );
    assert.equal(tellAll().filter(({ action }) => action === 'create').length, 800, '400 of all together');
    assert.equal(tellAll().filter(({ action }) => action === 'patch').length, 101);
    assert.equal(tell({ message: 'x', namespace: 'ns-1', uid: 'new' }).action, 'create');
  });

  test('successes are not limited', () => {
    const { tell } = rig();
    const decisions = Array.from({ length: 3000 }, (_, i) => tell({ message: 'x', uid: `u${i}`, type: 'Normal' }));
    assert.ok(decisions.every(({ action }) => action === 'create'));
  });
});
