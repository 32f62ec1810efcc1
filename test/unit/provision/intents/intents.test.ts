import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  ForeignIntentError,
  type FoundIntent,
  type IntentJournal,
  type IntentRecord,
  type JournalListener,
  noJournal,
  noRecords,
} from '../../../../src/provision/intent-journal/intent-journal.ts';
import {
  type JournalMetrics,
  noJournalMetrics,
  type OpenRecords,
} from '../../../../src/provision/intent-journal/journal-metrics.ts';
import { type Intent, isNeverSaved } from '../../../../src/provision/intents/intent.ts';
import type { Calls } from '../../../../src/provision/intents/earlier-requests.ts';
import {
  begunOf,
  deletableAtMs,
  heldInMs,
  isBeingDeleted,
  quietAtMs,
} from '../../../../src/provision/intents/intent-state.ts';
import { Intents } from '../../../../src/provision/intents/intents.ts';
import { NameInUseError } from '../../../../src/provision/intents/intent-index.ts';
import type { BackendProgress } from '../../../../src/provision/recoverable.ts';
import { VolumeLog } from '../../../../src/provision/cache/volume-log.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';

const { signal } = new AbortController();
const maxCallMs = 1000;
/** For how long nothing is deleted after a take-over, in milliseconds. */
const heldMs = 1.5 * maxCallMs;

function makeRecord(uid: string, more: Partial<IntentRecord> = {}): IntentRecord {
  return {
    claim: { namespace: 'ns', name: `claim-${uid}`, uid },
    volume: {
      name: `pvc-${uid}`,
      claimRef: { uid, name: `claim-${uid}` },
      className: 'c1',
      provisioner: 'drv',
      defaults: {},
    },
    plan: {},
    phase: 'create',
    createdAt: '2026-01-01T00:00:00.000Z',
    ...more,
  };
}

/** Intents with a journal that only notes what it is asked. */
async function scene(found: FoundIntent[] = [], journal: Partial<IntentJournal> = {}, progress?: BackendProgress) {
  const clock = new ManualClock({ turns: 1 });
  const asked: string[] = [];
  const renewed: [uid: string, since: string][] = [];
  const lines: LogLine[] = [];
  const reported: string[] = [];
  let counts = (): OpenRecords => assert.fail('nobody has said how to count');
  const metrics: JournalMetrics = {
    ...noJournalMetrics,
    reported: (reason) => reported.push(reason),
    open: (read) => {
      counts = read;
    },
  };
  let find: (intent: FoundIntent) => void = () => undefined;
  const volumeLog = new VolumeLog({ storageKeys: () => [] });
  const intents = new Intents({
    journal: {
      ...noJournal,
      open: (listener) => {
        find = (each) => listener.onFound(each);
        for (const each of found) listener.onFound(each);
        return Promise.resolve();
      },
      put: ({ phase }) => {
        asked.push(`put ${phase}`);
        return Promise.resolve('durable');
      },
      note: ({ phase }) => asked.push(`note ${phase}`),
      renewSince: (uid, since) => renewed.push([uid, since]),
      remove: (uid) => asked.push(`remove ${uid}`),
      removeNow: (uid) => {
        asked.push(`remove ${uid} now`);
        return Promise.resolve();
      },
      ...journal,
    },
    volumeLog,
    maxCallMs,
    progress,
    clock,
    logger: recordedLogger(lines),
    metrics,
  });
  const nothing = (): void => undefined;
  await intents.load(
    { changed: nothing, lost: nothing, discarded: nothing, drainEnded: nothing, fenced: nothing, nameFree: nothing },
    signal,
  );
  return { intents, volumeLog, clock, asked, renewed, lines, counts, reported, find };
}

/** A backend that has read what the test says. */
class ScriptedProgress implements BackendProgress {
  isBehind = false;
  #listener: (untilMs: number) => void = () => undefined;

  onProgress(listener: (untilMs: number) => void): Disposable {
    this.#listener = listener;
    return { [Symbol.dispose]: () => undefined };
  }

  read(untilMs: number): void {
    this.isBehind = untilMs !== Infinity;
    this.#listener(untilMs);
  }
}

test('none of ten thousand records lags behind by more than half a minute, while PersistentVolumes keep changing', async () => {
  const count = 10_000;
  const { intents, volumeLog, clock, renewed } = await scene();
  const ending = new AbortController();
  volumeLog.listed('1', { rewound: false });
  for (let n = 0; n < count; n++) await intents.openAndRecord(makeRecord(`u${n}`, { since: '1' }), { signal });
  const renewing = intents.upkeep.run(ending.signal);
  for (let version = 2; version < 26; version++) {
    volumeLog.advanced(String(version)); // PersistentVolumes of others change all the time
    await clock.advance(5000);
    while (clock.pending === 0) await nextTurn(); // the check goes through all of them in slices, and then sleeps
    const oldest = Math.min(...[...intents.list()].map(({ since }) => since));
    assert.ok(oldest >= version - 6, `after ${version - 1} times 5 s: ${oldest}`);
  }
  assert.ok(renewed.length <= 7 * count, 'each is renewed every 20 s');
  assert.deepEqual(
    [...intents.list()].map(({ since, record }) => [record.since, since]).filter(([of, own]) => of !== String(own)),
    [],
  );
  ending.abort();
  await renewing;
});

test('the version of a record whose PersistentVolume was seen stays, and that of a record of another process', async () => {
  const sketch = { apiVersion: 'v1', kind: 'PersistentVolume', spec: {} };
  const found = { record: makeRecord('u2', { since: '1' }), owner: 'foreign' } as const;
  const { intents, volumeLog, clock, renewed } = await scene([found]);
  const ending = new AbortController();
  volumeLog.listed('1', { rewound: false });
  const seen = await intents.openAndRecord(makeRecord('u1', { since: '1' }), { signal });
  const other = await intents.openAndRecord(makeRecord('u3', { since: '1' }), { signal });
  const renewing = intents.upkeep.run(ending.signal);
  volumeLog.changed('ADDED', { ...sketch, metadata: { name: 'pvc-u1', resourceVersion: '2' } });
  volumeLog.advanced('3');
  await clock.advance(60_000);
  assert.deepEqual(renewed, [['u3', '3']]);
  assert.deepEqual([seen.since, intents.get('u2')?.since, other.since], [1, 1, 3]);
  ending.abort();
  await renewing;
});

/** The calls of an attempt. */
function callsOf({ state }: Intent): Calls {
  const begun = begunOf(state);
  assert.ok(begun);
  return begun.calls;
}

function isQuietAtMs({ state }: Intent): number {
  const begun = begunOf(state);
  assert.ok(begun);
  return quietAtMs(begun);
}

describe('a call that was given up', () => {
  const lateMs = 1.5 * maxCallMs;

  async function givenUp() {
    const progress = new ScriptedProgress();
    const scenes = await scene([], {}, progress);
    const intent = await scenes.intents.openAndRecord(makeRecord('u1'), { signal });
    progress.isBehind = true;
    scenes.intents.unclear(intent);
    return { ...scenes, progress, intent };
  }

  test('counts as late from then on where the backend has read it promptly', async () => {
    const { clock, progress, intent } = await givenUp();
    await clock.advance(maxCallMs / 4);
    progress.read(Infinity);
    assert.equal(isQuietAtMs(intent), lateMs);
  });

  test('may be under way for as long as the backend has not read it', async () => {
    const { intent } = await givenUp();
    assert.equal(isQuietAtMs(intent), Infinity);
  });

  test('counts as a new one from when a backend that had stalled for a moment has read it', async () => {
    const { clock, progress, intent } = await givenUp();
    await clock.advance(maxCallMs / 4 + 1);
    progress.read(Infinity);
    assert.equal(isQuietAtMs(intent), maxCallMs / 4 + 1 + maxCallMs + lateMs);
  });

  test('counts with the first of them where several were given up before the backend went on', async () => {
    const { clock, intents, progress, intent } = await givenUp();
    await clock.advance(59_000);
    intents.unclear(intent);
    await clock.advance(1000);
    progress.read(1);
    assert.ok(callsOf(intent).unread, 'the last one may not have been read');
    progress.read(Infinity);
    assert.equal(isQuietAtMs(intent), 60_000 + maxCallMs + lateMs);
  });

  test('keeps the storage of its volume until the backend has read it, for a minute at most', async () => {
    const { clock, intents, intent } = await givenUp();
    await clock.advance(lateMs);
    assert.equal(intents.heldInMs(intent.record.volume.name), 1000, 'a pause');
    await clock.advance(60_000 - lateMs - 1);
    assert.equal(intents.heldInMs(intent.record.volume.name), 1);
    await clock.advance(1);
    assert.equal(intents.heldInMs(intent.record.volume.name), 0);
  });

  test('is not recorded as ended while the backend may not have read it', async () => {
    const { clock, intents, progress, intent } = await givenUp();
    await clock.advance(10 * maxCallMs);
    await intents.toDelete(intent, 'h', signal);
    assert.equal(intent.record.quietInMs, undefined);
    progress.read(Infinity);
    await clock.advance(10 * maxCallMs);
    await intents.toDelete(intent, 'h', signal);
    assert.equal(intent.record.quietInMs, 0);
  });
});

describe('the intents that are open', () => {
  test('are counted by phase, and gone once they are closed', async () => {
    const { intents, counts, asked } = await scene();
    const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
    intents.unclear(intent);
    assert.deepEqual(counts().byPhase, { ...noRecords(), unclear: 1 });
    await intents.toDelete(intent, 'h', signal);
    assert.deepEqual(counts().byPhase, { ...noRecords(), delete: 1 });
    intents.on(intent, { type: 'stuck', reason: 'undecidable', text: 'why' });
    assert.deepEqual(counts().byPhase, { ...noRecords(), stuck: 1 });
    assert.equal(intent.record.handle, 'h');
    intents.close(intent);
    intents.close(intent);
    assert.deepEqual(counts().byPhase, noRecords());
    assert.deepEqual([...intents.list()], []);
    assert.deepEqual(asked, ['put create', 'note unclear', 'put delete', 'note stuck', 'remove u1']);
  });

  test('are not replaced by one that was planned after another process had begun one for the same claim', async () => {
    const { intents, asked, find } = await scene();
    find({ record: makeRecord('u1', { plan: { node: 'theirs' } }), owner: 'foreign' });
    const ours = makeRecord('u1', { plan: { node: 'ours' } });
    await assert.rejects(intents.openAndRecord(ours, { signal }), ForeignIntentError);
    assert.deepEqual(intents.get('u1')?.record.plan, { node: 'theirs' });
    assert.deepEqual(asked, []);
  });

  test('leave nothing behind when their record cannot be written', async () => {
    const { intents, asked } = await scene([], { put: () => Promise.reject(new Error('refused')) });
    await assert.rejects(intents.openAndRecord(makeRecord('u1'), { signal }), /refused/);
    assert.equal(intents.get('u1'), undefined);
    assert.deepEqual(asked, ['remove u1'], 'the write may have arrived');
    intents.checkName('u2', 'pvc-u1');
  });

  const cases: { title: string; journal: Partial<IntentJournal> }[] = [
    { title: 'whose record could not be written', journal: { put: () => Promise.resolve('unprotected') } },
    {
      title: 'whose record other processes may take over',
      journal: { permit: { isValid: true, renewed: () => Promise.resolve() } },
    },
  ];
  for (const { title, journal } of cases) {
    test(`${title} may have had a PersistentVolume`, async () => {
      const { intents } = await scene([], journal);
      const begun = await intents.openAndRecord({ ...makeRecord('u1'), since: '7' }, { signal });
      assert.equal(isNeverSaved(begun), false);
      const { intents: alone } = await scene();
      assert.equal(isNeverSaved(await alone.openAndRecord({ ...makeRecord('u1'), since: '7' }, { signal })), true);
    });
  }

  test('that were closed are never deleted', async () => {
    const { intents, asked } = await scene();
    const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
    intents.close(intent);
    await assert.rejects(intents.toDelete(intent, 'h', signal), /not open any more/);
    assert.throws(() => intents.checkOpen(intent), /not open any more/);
    intents.unclear(intent);
    assert.deepEqual(asked, ['put create', 'remove u1']);
  });

  test('lose the handle when the deletion is given up', async () => {
    const { intents, asked } = await scene();
    const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
    await intents.onWritten(intent, { type: 'wanted' }, signal);
    await intents.toDelete(intent, 'h', signal);
    await intents.toDelete(intent, 'h', signal);
    await intents.onWritten(intent, { type: 'wanted' }, signal);
    assert.equal('handle' in intent.record, false);
    assert.deepEqual(asked, ['put create', 'put delete', 'put delete', 'put create']);
  });

  test('prove nothing any more once the journal has gone back to an earlier state', async () => {
    let listener: JournalListener | undefined;
    const open: IntentJournal['open'] = (given) => {
      listener = given;
      return Promise.resolve();
    };
    const { intents, asked } = await scene([], { open });
    const intent = await intents.openAndRecord({ ...makeRecord('u1'), since: '7' }, { signal });
    assert.deepEqual([intent.since, intents.upkeep.neededVersions()], [7, [7]]);
    listener?.onRewound();
    assert.deepEqual([intent.since, intent.record.since, intents.upkeep.neededVersions()], [NaN, undefined, []]);
    assert.deepEqual(asked, ['put create', 'note create']);
  });

  test('have no version where etcd was restored while the volume was planned', async () => {
    const written: IntentRecord[] = [];
    const put = (record: IntentRecord) => {
      written.push(record);
      return Promise.resolve('durable' as const);
    };
    const { intents, volumeLog } = await scene([], { put });
    volumeLog.listed('510', { rewound: true });
    const [before, after] = [
      await intents.openAndRecord({ ...makeRecord('u1'), since: '1000' }, { signal }),
      await intents.openAndRecord({ ...makeRecord('u2'), since: '510' }, { signal }),
    ];
    assert.deepEqual([before.since, after.since], [NaN, 510]);
    assert.deepEqual(
      written.map(({ since }) => since),
      [undefined, '510'],
    );
  });

  test('are reported as stuck once for each reason, though a backend words it differently each time', async () => {
    const { intents, lines, reported, asked } = await scene();
    const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
    for (const problem of ['request 1', 'request 1', 'request 2'])
      intents.on(intent, { type: 'stuck', reason: 'undecidable', text: problem });
    intents.on(intent, { type: 'stuck', reason: 'restored', text: 'kept' });
    assert.equal(lines.length, 2);
    assert.deepEqual(reported, ['undecidable', 'restored']);
    assert.deepEqual(asked, ['put create', 'note stuck', 'note stuck']);
  });

  test('are not reported again by the next process for the same problem', async () => {
    const record = makeRecord('u1', { phase: 'stuck', problem: 'one' });
    const { intents, reported } = await scene([{ record, owner: 'own' }]);
    intents.on(intents.get('u1')!, { type: 'stuck', reason: 'undecidable', text: 'one' });
    assert.deepEqual(reported, []);
  });

  test('are stuck again after another attempt to delete that failed for the same problem', async () => {
    const { intents, reported } = await scene();
    const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
    for (let attempt = 0; attempt < 2; attempt++) {
      intents.on(intent, { type: attempt === 0 ? 'called' : 'unwanted' });
      await intents.toDelete(intent, 'h', signal);
      intents.on(intent, { type: 'stuck', reason: 'undecidable', text: 'one' });
      assert.equal(intent.record.phase, 'stuck');
    }
    assert.deepEqual(reported, ['undecidable']);
  });

  test('hold no more of a problem than fits into a record', async () => {
    const { intents } = await scene();
    const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
    intents.on(intent, { type: 'stuck', reason: 'undecidable', text: 'x'.repeat(1_000_000) });
    assert.equal(intent.record.problem?.length, 2000);
  });

  test('have an oldest one, also when an older record is found later', async () => {
    const { intents, counts, find } = await scene();
    assert.equal(counts().oldestMs, Infinity);
    await intents.openAndRecord(makeRecord('u1', { createdAt: '2026-01-01T01:00:00.000Z' }), { signal });
    find({ record: makeRecord('u2', { createdAt: '2026-01-01T00:30:00.000Z' }), owner: 'own' });
    find({ record: makeRecord('u3', { createdAt: 'edited' }), owner: 'own' });
    assert.equal(counts().oldestMs, Date.parse('2026-01-01T00:30:00.000Z'));
    intents.close(intents.get('u2')!);
    assert.equal(counts().oldestMs, Date.parse('2026-01-01T01:00:00.000Z'));
  });
});

describe('a volume name', () => {
  const named = (uid: string): IntentRecord => {
    const record = makeRecord(uid);
    return { ...record, volume: { ...record.volume, name: 'same' } };
  };

  test('is in use by one intent at a time', async () => {
    const { intents } = await scene();
    const first = await intents.openAndRecord(named('u1'), { signal });
    intents.checkName('u1', 'same');
    assert.throws(() => intents.checkName('u2', 'same'), {
      name: 'NameInUseError',
      message: 'the volume name "same" is in use for claim ns/claim-u1 with UID u1',
    });
    await assert.rejects(intents.openAndRecord(named('u2'), { signal }), NameInUseError);
    intents.close(first);
    await intents.openAndRecord(named('u2'), { signal });
  });

  test('is in use until the end of its record is written', async () => {
    const written = Promise.withResolvers<undefined>();
    const { intents } = await scene([], { removeNow: () => written.promise });
    const first = await intents.openAndRecord(named('u1'), { signal });
    const closed = intents.closeNow(first, signal);
    assert.throws(() => intents.checkName('u2', 'same'), NameInUseError);
    written.resolve(undefined);
    await closed;
    intents.checkName('u2', 'same');
  });

  test('is taken by the next claim once the record of the last one is out of the journal', async () => {
    const removed = Promise.withResolvers<undefined>();
    const order: string[] = [];
    const { intents } = await scene([], {
      put: ({ claim }) => {
        order.push(`put ${claim.uid}`);
        return Promise.resolve('durable');
      },
      removeNow: async (uid) => {
        await removed.promise;
        order.push(`removed ${uid}`);
      },
    });
    intents.close(await intents.openAndRecord(named('u1'), { signal }));
    const next = intents.openAndRecord(named('u2'), { signal });
    await nextTurn();
    removed.resolve(undefined);
    await next;
    assert.deepEqual(order, ['put u1', 'removed u1', 'put u2']);
  });

  test('is taken again by the same claim without waiting', async () => {
    const { intents, asked } = await scene();
    intents.close(await intents.openAndRecord(named('u1'), { signal }));
    await intents.openAndRecord(named('u1'), { signal });
    assert.deepEqual(asked, ['put create', 'remove u1', 'put create']);
  });

  test('of two records that were found belongs to the first', async () => {
    const { intents } = await scene([
      { record: named('u1'), owner: 'own' },
      { record: named('u2'), owner: 'own' },
    ]);
    intents.checkName('u1', 'same');
    assert.throws(() => intents.checkName('u2', 'same'), NameInUseError);
  });
});

describe('a record that was found', () => {
  test('may have left anything, and deletes nothing before the calls of the earlier process have ended', async () => {
    const { intents } = await scene([{ record: makeRecord('u1'), owner: 'own' }]);
    const intent = intents.get('u1')!;
    const { mayExist, saves } = begunOf(intent.state)!;
    assert.deepEqual([mayExist, saves.isSent, intent.state.kind], [true, true, 'creating']);
    intents.on(intent, { type: 'unwanted' });
    assert.equal(deletableAtMs(intent.state, false), heldMs);
  });

  test('keeps the storage of its name until they have ended, and until it is looked at unless it is stuck', async () => {
    const { intents, clock } = await scene([{ record: makeRecord('u1'), owner: 'own' }]);
    const intent = intents.get('u1')!;
    const { name } = intent.record.volume;
    assert.equal(intents.heldInMs(name), heldMs);
    assert.equal(intents.heldInMs('another'), 0);
    await clock.advance(heldMs);
    assert.equal(intents.heldInMs(name), 0);
    intents.on(intent, { type: 'unwanted' });
    assert.equal(intents.heldInMs(name), 1000);
    intents.on(intent, { type: 'stuck', reason: 'undecidable', text: 'the secret is gone' });
    assert.equal(intents.heldInMs(name), 0);
  });

  test('of a wait waits for what was left of it when it was written', async () => {
    const record = makeRecord('u1', { phase: 'revoke', handle: 'h', quietInMs: 700 });
    const { intents } = await scene([{ record, owner: 'own' }]);
    assert.equal(deletableAtMs(intents.get('u1')!.state, false), 700);
  });

  test('of a wait is written with what is left of it, 1 s after it was found and each 20 s', async () => {
    const written: unknown[] = [];
    const record = makeRecord('u1', { phase: 'revoke', handle: 'h', quietInMs: 90_000 });
    const { intents, clock } = await scene([{ record, owner: 'own' }], {
      note: ({ quietInMs }) => written.push(quietInMs),
    });
    const ending = new AbortController();
    const renewing = intents.upkeep.run(ending.signal);
    await clock.advance(1000);
    for (let seconds = 1; seconds < 43; seconds += 5) await clock.advance(5000);
    assert.deepEqual(written, [89_000, 69_000, 49_000]);
    ending.abort();
    await renewing;
  });

  test('of a wait that is found long after the start is written within six seconds, so that short lives end it', async () => {
    const written: unknown[] = [];
    const record = makeRecord('u1', { phase: 'revoke', handle: 'h', quietInMs: 90_000 });
    const { intents, clock, find } = await scene([], { note: ({ quietInMs }) => written.push(quietInMs) });
    const ending = new AbortController();
    const renewing = intents.upkeep.run(ending.signal);
    await clock.advance(1000);
    find({ record, owner: 'own' });
    for (let seconds = 1; seconds <= 21; seconds += 5) await clock.advance(5000);
    assert.deepEqual(written, [85_000, 65_000]);
    ending.abort();
    await renewing;
  });

  for (const phase of ['delete', 'stuck'] as const) {
    test(`with a handle may have been deleted already, phase ${phase}`, async () => {
      const { intents } = await scene([{ record: makeRecord('u1', { phase, handle: 'h' }), owner: 'own' }]);
      assert.equal(isBeingDeleted(intents.get('u1')!.state), true);
    });
  }

  for (const [what, fields, isLast] of [
    ['with a handle in the phase delete', { phase: 'delete' }, false],
    ['with a handle in the phase stuck', { phase: 'stuck' }, false],
    ['in the phase delete that says that it was quiet', { phase: 'delete', quietInMs: 0 }, true],
    ['in the phase stuck that says that it was quiet', { phase: 'stuck', quietInMs: 0 }, true],
  ] as const) {
    test(`${what} is ${isLast ? '' : 'not '}done once it is deleted, and the record of the next deletion says the same`, async () => {
      const written: IntentRecord[] = [];
      const { intents, clock } = await scene([{ record: makeRecord('u1', { ...fields, handle: 'h' }), owner: 'own' }], {
        put: (record) => {
          written.push(record);
          return Promise.resolve('durable');
        },
      });
      const intent = intents.get('u1')!;
      await clock.advance(10 * heldMs);
      intents.on(intent, { type: 'unwanted' });
      await intents.toDelete(intent, 'h', signal);
      assert.deepEqual(
        written.map(({ phase, quietInMs }) => [phase, quietInMs]),
        [['delete', isLast ? 0 : undefined]],
      );
      assert.equal(await intents.onWritten(intent, { type: 'nothing-left', isWanted: false }, signal), isLast);
    });
  }

  test('does not replace one that is worked on', async () => {
    const { intents } = await scene([
      { record: makeRecord('u1'), owner: 'own' },
      { record: makeRecord('u1', { phase: 'delete', handle: 'h' }), owner: 'foreign' },
    ]);
    assert.equal(intents.get('u1')?.state.kind, 'creating');
    assert.equal([...intents.list()].length, 1);
  });

  test('replaces one whose own record is not written yet: the other process was first', async () => {
    const written = Promise.withResolvers<never>();
    const { intents, find, clock } = await scene([], { put: () => written.promise });
    const begun = intents.openAndRecord(makeRecord('u1'), { signal });
    find({ record: makeRecord('u1', { createdAt: '2025-01-01T00:00:00Z' }), owner: 'foreign' });
    written.reject(new ForeignIntentError('another process works on it'));
    await assert.rejects(begun, ForeignIntentError);
    assert.equal(intents.get('u1')?.state.kind, 'foreign');
    assert.equal(intents.get('u1')?.record.createdAt, '2025-01-01T00:00:00Z');
    assert.equal(heldInMs(intents.get('u1')!.state, clock.monotonicMs()), heldMs);
  });

  test('replaces one of another process', async () => {
    const { intents, counts } = await scene([
      { record: makeRecord('u1'), owner: 'foreign' },
      { record: makeRecord('u1', { phase: 'unclear' }), owner: 'own' },
    ]);
    assert.equal(intents.get('u1')?.state.kind, 'creating');
    assert.deepEqual(counts().byPhase, { ...noRecords(), unclear: 1 });
  });
});

test('a deletion waits for the last call of a process whose record was adopted', async () => {
  const { intents, clock } = await scene([{ record: makeRecord('u1'), owner: 'foreign' }]);
  const intent = intents.get('u1')!;
  await intents.takeOver(intent, signal);
  await clock.advance(60_000);
  intents.on(intent, { type: 'unwanted' });
  const noticeMs = 10_000;
  assert.equal(isQuietAtMs(intent), clock.monotonicMs() + noticeMs + 1.5 * maxCallMs);
  assert.equal(intents.heldInMs(intent.record.volume.name), noticeMs + 1.5 * maxCallMs);
});

test('the record of a deletion does not say that it was quiet while another process may work on it', async () => {
  const { intents, clock } = await scene([{ record: makeRecord('u1'), owner: 'foreign' }]);
  const intent = intents.get('u1')!;
  await intents.takeOver(intent, signal);
  assert.equal(isQuietAtMs(intent), 10_000 + 1.5 * maxCallMs, 'it may begin a call before it notices');
  await clock.advance(60_000);
  await intents.toDelete(intent, 'h', signal);
  assert.equal(intent.record.quietInMs, undefined);
  assert.equal(await intents.onWritten(intent, { type: 'nothing-left', isWanted: false }, signal), true);
});

test('a new record takes over when the calls of a closed record of the same name have ended', async () => {
  const { intents, clock } = await scene();
  const first = await intents.openAndRecord(makeRecord('u1'), { signal });
  intents.unclear(first);
  await intents.closeNow(first, signal);
  const second = await intents.openAndRecord(makeRecord('u1'), { signal });
  assert.equal(isQuietAtMs(second), clock.monotonicMs() + 1.5 * maxCallMs);
  assert.equal(intents.lateCallsMs('pvc-u1'), 1.5 * maxCallMs);
});

test('no room is certain the second time, when no unclear attempt can be under way any more', async () => {
  const { intents, clock } = await scene();
  const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
  const lateMs = 1.5 * maxCallMs;
  const isCertain = (): boolean => intents.on(intent, { type: 'no-room' });
  intents.unclear(intent);
  await clock.advance(lateMs - 1);
  assert.equal(isCertain(), false);
  assert.equal(isCertain(), false, 'both were early');
  await clock.advance(1);
  assert.equal(isCertain(), false);
  assert.equal(isCertain(), true);
  intents.unclear(intent);
  await clock.advance(lateMs);
  assert.equal(isCertain(), false, 'another unclear attempt came between');
});

test('an event that a state does not expect is logged, and changes nothing', async () => {
  const { intents, lines } = await scene();
  const intent = await intents.openAndRecord(makeRecord('u1'), { signal });
  const { state } = intent;
  intents.on(intent, { type: 'delete-sent' });
  assert.equal(intent.state, state);
  assert.deepEqual(
    lines.map(({ level, message }) => [level, message.slice(0, 31)]),
    [['error', 'An event that the state of a vo']],
  );
});
