import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ApiServerResponses,
  RecentCalls,
  recordedWork,
  releasedVolumes,
} from '../../../../src/cli/status/reported-work.ts';
import type { OpenIntent } from '../../../../src/provision/controller-status.ts';
import type { ReleasedVolume } from '../../../../src/provision/object-progress.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

const volume = (number: number, changes: Partial<ReleasedVolume> = {}): ReleasedVolume => ({
  name: `pv-${String(number).padStart(5, '0')}`,
  claim: 'ns/a',
  className: 'c',
  releasedAt: new Date(Date.UTC(2026, 0, 1) + number * 1000).toISOString(),
  step: 'queued',
  failures: 0,
  lastError: undefined,
  nextTryInMs: undefined,
  waitText: undefined,
  ...changes,
});

describe('the released volumes of a report', () => {
  test('are those that fail, then the oldest, and no more than 50 of any number', async () => {
    const all = Array.from({ length: 2000 }, (_, number) =>
      number % 100 === 7 ? volume(number, { failures: 1 }) : volume(number),
    );
    all.push(
      volume(9999, { lastError: { message: 'e', kind: 'failed', atMs: 2, sinceMs: 1 } }),
      volume(3000, { step: 'shared-storage' }),
    );
    const found = await releasedVolumes({
      *releasedVolumes() {
        yield undefined;
        yield* all.toReversed();
      },
    });
    assert.deepEqual([found.total, found.failing, found.first.length], [2002, 21, 50]);
    assert.deepEqual(
      found.first.slice(0, 3).map(({ name }) => name),
      ['pv-00007', 'pv-00107', 'pv-00207'],
    );
    assert.deepEqual(
      found.first.slice(19, 23).map(({ name }) => name),
      ['pv-01907', 'pv-09999', 'pv-00000', 'pv-00001'],
    );
    assert.deepEqual(found.sharing, { count: 1, example: 'volume pv-03000' });
  });
});

describe('the waits of a report', () => {
  const intent = (name: string, wait: OpenIntent['wait']): OpenIntent => ({
    claim: { namespace: 'ns', name, uid: name },
    phase: 'unclear',
    createdAt: '2026-01-01T00:00:00Z',
    volume: `pvc-${name}`,
    wait,
  });

  test('have a row for each reason, with the first and the last end', async () => {
    const intents = [
      intent('a', { reason: 'earlier-call', endsInMs: 9000 }),
      intent('b', { reason: 'earlier-call', endsInMs: 3000 }),
      intent('c', { reason: 'other-process', endsInMs: undefined }),
      intent('d', undefined),
    ];
    const { waits, phases } = await recordedWork(
      { openIntents: () => intents.values() as Generator<OpenIntent> },
      { sharing: { count: 2, example: 'volume v' }, isJournalRefused: true },
    );
    assert.equal(phases[0]?.count, 4);
    assert.deepEqual(
      waits.map(({ reason, count, firstEndsInMs, lastEndsInMs, example }) => [
        reason,
        count,
        firstEndsInMs,
        lastEndsInMs,
        example,
      ]),
      [
        ['earlier-call', 2, 3000, 9000, 'claim ns/a'],
        ['other-process', 1, undefined, undefined, 'claim ns/c'],
        ['late-save', 0, undefined, undefined, undefined],
        ['proof', 0, undefined, undefined, undefined],
        ['shared-storage', 2, undefined, undefined, 'volume v'],
        ['journal-rights', 1, undefined, undefined, undefined],
      ],
    );
  });
});

describe('ApiServerResponses', () => {
  test('failures are an outage only after ten seconds without any answer', async () => {
    const clock = new ManualClock({ turns: 1 });
    const answers = new ApiServerResponses(clock);
    answers.record('200');
    await clock.advance(60_000);
    assert.equal(answers.failingSinceMs, undefined, 'nothing was asked');
    const sinceMs = clock.wallMs();
    answers.record('<error>');
    await clock.advance(9999);
    answers.record('503');
    assert.equal(answers.failingSinceMs, undefined);
    await clock.advance(1);
    assert.equal(answers.failingSinceMs, sinceMs);
    answers.record('404');
    assert.equal(answers.failingSinceMs, undefined);
  });

  test('requests that were aborted at one moment are no outage, nor is one that nobody has asked about for minutes', async () => {
    const clock = new ManualClock({ turns: 1 });
    const answers = new ApiServerResponses(clock);
    for (let request = 0; request < 5; request++) answers.record('<error>');
    await clock.advance(60_000);
    assert.equal(answers.failingSinceMs, undefined);
    answers.record('<error>');
    assert.notEqual(answers.failingSinceMs, undefined);
    await clock.advance(121_000);
    assert.equal(answers.failingSinceMs, undefined);
  });
});

describe('RecentCalls', () => {
  test('counts the calls of the last five minutes, failed ones apart', async () => {
    const clock = new ManualClock();
    const calls = new RecentCalls(clock);
    calls.record('CreateVolume', { failed: true, seconds: 1 });
    await clock.advance(3 * 60_000);
    for (let count = 0; count < 3; count++) calls.record('CreateVolume', { failed: false, seconds: 2 });
    const [before] = calls.list();
    assert.deepEqual([before?.count, before?.failed], [4, 1]);
    await clock.advance(2 * 60_000);
    const [after] = calls.list();
    assert.deepEqual([after?.count, after?.failed], [3, 0]);
    await clock.advance(3_600_000);
    const [late] = calls.list();
    assert.deepEqual([late?.count, late?.medianSeconds], [0, 2]);
  });

  test('has median and 95 % of the last 128 calls of a kind', () => {
    const calls = new RecentCalls(new ManualClock());
    for (let count = 0; count < 1000; count++) calls.record('a', { failed: false, seconds: 100 });
    for (let count = 1; count <= 128; count++) calls.record('a', { failed: false, seconds: count });
    const [kind] = calls.list();
    assert.deepEqual([kind?.medianSeconds, kind?.p95Seconds], [64, 121]);
  });

  test('lists kinds in an order that does not depend on which came first: the calls to the driver, then the requests', () => {
    const calls = new RecentCalls(new ManualClock());
    const names = ['watch persistentvolumes', 'DeleteVolume', 'create events', 'CreateVolume'];
    for (const name of names) calls.record(name, { failed: false, seconds: 1 });
    assert.deepEqual(
      calls.list().map(({ name }) => name),
      ['CreateVolume', 'DeleteVolume', 'create events', 'watch persistentvolumes'],
    );
  });

  test('keeps a bounded number of kinds: further ones are counted together', () => {
    const calls = new RecentCalls(new ManualClock());
    for (let kind = 0; kind < 1000; kind++) calls.record(`kind ${kind}`, { failed: false, seconds: 1 });
    const list = calls.list();
    assert.equal(list.length, 65);
    assert.equal(list.at(-1)?.name, 'other');
    assert.equal(list.at(-1)?.count, 936);
  });
});
