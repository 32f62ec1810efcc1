/** What each event leads to. A row for each branch: a transition that is broken fails at least one of them, which is checked, too. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { intentPhases, type IntentRecord } from '../../../../src/provision/intent-journal/intent-journal.ts';
import { type Calls, noCalls, noSaves } from '../../../../src/provision/intents/earlier-requests.ts';
import {
  anythingSent,
  creating,
  deleting,
  type IntentEvent,
  type IntentState,
  maxProofMs,
  type Next,
  next,
  revoking,
  transitions,
} from '../../../../src/provision/intents/intent-state.ts';
import { foundIntent } from '../../../../src/provision/intents/intent.ts';

const nowMs = 1_000_000;
const time = { nowMs, maxCallMs: 10_000 };
/** Until when a call is late that is given up now. */
const lateMs = nowMs + 15_000;
const late: Calls = { sinceMs: nowMs - 1, endMs: nowMs + 5000, unread: undefined };
const unread: Calls = { ...noCalls, unread: { firstMs: nowMs, lastMs: nowMs } };
const current = { handle: 'h', isCurrent: true };
const text = 'why';
const problem = { reason: 'undecidable', text: 'before' } as const;
const unproved = { reason: 'unproved', text: 'before' } as const;

type Begun = Parameters<typeof creating>[0];
const unsent = { ...anythingSent(noCalls), mayExist: false, saves: noSaves };
const begun = (more: Partial<Begun> = {}): Begun => anythingSent(noCalls, more);
const making = (more: Partial<Begun> = {}): IntentState => creating(begun(more));
const undoing = (more: Partial<Begun> = {}, rest: object = {}): IntentState => ({ ...revoking(begun(more)), ...rest });
const removing = (more: Partial<Begun> = {}, rest: object = {}): IntentState => ({
  ...deleting(begun(more), { storage: current, isLast: true, isSent: true, notBeforeMs: -Infinity }),
  ...rest,
});
const left = (was: IntentState, why: typeof problem | typeof unproved = problem): IntentState => {
  assert.ok(was.kind === 'creating' || was.kind === 'revoking' || was.kind === 'deleting');
  return { kind: 'stuck', problem: why, was };
};
const recording: IntentState = { kind: 'recording', calls: late };
const foreign: IntentState = { kind: 'foreign', calls: late, isUnclear: true, problem };
const saved: IntentState = { kind: 'saved', calls: noCalls };

type Want = Partial<Omit<Next, 'state'>> & { state: object };
/** Undefined: the event is not expected. */
type Row = [what: string, from: IntentState, event: IntentEvent, want: Want | undefined];

const rows: Row[] = [
  [
    'a written record allows the calls, and earlier ones of its name stay late',
    recording,
    { type: 'recorded', isAlone: true },
    { state: { kind: 'creating', mayExist: false, isAlone: true, calls: late, saves: noSaves } },
  ],
  ['a record is written once', making(), { type: 'recorded', isAlone: true }, undefined],

  [
    'a call may create storage, and another than before',
    making({ mayExist: false, storage: current }),
    { type: 'called' },
    { state: { kind: 'creating', isCalling: true, mayExist: true, storage: { handle: 'h', isCurrent: false } } },
  ],
  [
    'a call ends what an operator had to decide, and the record still says it',
    left(making()),
    { type: 'called' },
    { state: { kind: 'creating', isCalling: true, problem } },
  ],
  ['nothing is called for a volume that no claim wants', undoing(), { type: 'called' }, undefined],

  [
    'a call has ended',
    { ...creating(begun()), isCalling: true },
    { type: 'call-ended' },
    { state: { kind: 'creating', isCalling: false } },
  ],
  [
    'a call has ended with a deletion of what does not match',
    removing({}, { isWorking: true }),
    { type: 'call-ended' },
    { state: { kind: 'deleting', isWorking: false } },
  ],

  [
    'a first call that was not sent leaves nothing',
    making(),
    { type: 'unsent', mayExist: false },
    { state: { kind: 'creating' }, isDone: true },
  ],
  [
    'a further call that was not sent leaves what was before',
    making(),
    { type: 'unsent', mayExist: true },
    { state: { kind: 'creating', mayExist: true }, isDone: false },
  ],

  [
    'storage has a name, which is that of now',
    making(),
    { type: 'named', handle: 'h' },
    { state: { kind: 'creating', storage: current } },
  ],
  [
    'a driver that names storage has not only refused',
    undoing({}, { refusedSinceMs: 1 }),
    { type: 'named', handle: 'h' },
    { state: { kind: 'revoking', storage: current, refusedSinceMs: undefined } },
  ],

  [
    'storage that is created has had room',
    making({ lacksRoom: true }),
    { type: 'made' },
    { state: { kind: 'creating', lacksRoom: false } },
  ],

  [
    'a call without a clear result may be carried out late',
    making({ storage: current, lacksRoom: true }),
    { type: 'unclear', isBehind: false },
    {
      state: {
        kind: 'creating',
        isUnclear: true,
        lacksRoom: false,
        storage: { isCurrent: false },
        calls: { sinceMs: nowMs, endMs: lateMs },
      },
      write: 'note',
    },
  ],
  [
    'a call that the backend may not have read has no end',
    making(),
    { type: 'unclear', isBehind: true },
    { state: { calls: { unread: { firstMs: nowMs, lastMs: nowMs } } }, write: 'note' },
  ],
  [
    'a look without a clear result begins the waits again',
    undoing({}, { proofSinceMs: 1, refusedSinceMs: 1 }),
    { type: 'unclear', isBehind: false },
    { state: { kind: 'revoking', calls: { endMs: lateMs }, proofSinceMs: undefined, refusedSinceMs: undefined } },
  ],
  [
    'a deletion without a clear result creates nothing',
    removing(),
    { type: 'unclear', isBehind: false },
    { state: { kind: 'deleting', isUnclear: false, calls: noCalls } },
  ],

  ['no room is to be repeated', making(), { type: 'no-room' }, { state: { lacksRoom: true }, isDone: false }],
  [
    'no room twice means that nothing is there',
    making({ lacksRoom: true }),
    { type: 'no-room' },
    { state: { kind: 'creating' }, isDone: true },
  ],
  [
    'no room says nothing while a call may be late',
    making({ lacksRoom: true, calls: late }),
    { type: 'no-room' },
    { state: { kind: 'creating' }, isDone: false },
  ],
  [
    'no room says nothing about storage that was named',
    undoing({ lacksRoom: true, storage: current }),
    { type: 'no-room' },
    { state: { kind: 'revoking' }, isDone: false },
  ],

  [
    'a save may have created the PersistentVolume',
    making({ saves: noSaves }),
    { type: 'save-sent' },
    { state: { saves: { isSent: true, isSending: true } } },
  ],
  [
    'a save is counted for what is stuck',
    left(making({ saves: noSaves })),
    { type: 'save-sent' },
    { state: { kind: 'stuck', was: { saves: { isSent: true, isSending: true } } } },
  ],
  [
    'a save with a clear result has ended',
    making({ saves: { isSent: true, isSending: true, endMs: 7 } }),
    { type: 'save-ended', isClear: true },
    { state: { saves: { isSent: true, isSending: false, endMs: 7 } } },
  ],
  [
    'a save without one may be carried out for 65 s',
    making({ saves: { isSent: true, isSending: true, endMs: 7 } }),
    { type: 'save-ended', isClear: false },
    { state: { saves: { isSent: true, isSending: false, endMs: nowMs + 65_000 } } },
  ],

  ['a saved volume has no use for its record', making(), { type: 'saved' }, { state: { kind: 'saved' }, isDone: true }],
  [
    'the record of a saved volume stays open for late calls',
    left(making({ calls: late })),
    { type: 'saved' },
    { state: { kind: 'saved', calls: late }, isDone: false },
  ],
  [
    'the record of a saved volume stays open for another process',
    making({ isShared: true }),
    { type: 'saved' },
    { state: { kind: 'saved', calls: { endMs: nowMs + 25_000 } }, isDone: false },
  ],
  ['a saved volume has a written record', recording, { type: 'saved' }, undefined],

  [
    'what no claim wants is revoked',
    making(),
    { type: 'unwanted' },
    { state: { kind: 'revoking', isWorking: false, isWaitRecorded: false } },
  ],
  [
    'what another process may still create is revoked later',
    making({ isShared: true }),
    { type: 'unwanted' },
    { state: { kind: 'revoking', calls: { endMs: nowMs + 25_000 } } },
  ],
  [
    'what is stuck and can be decided is revoked',
    left(undoing()),
    { type: 'unwanted' },
    { state: { kind: 'revoking', problem } },
  ],
  [
    'what may be kept on purpose is left to an operator',
    left(making(), unproved),
    { type: 'unwanted' },
    { state: { kind: 'stuck', problem: unproved } },
  ],
  [
    'what may be kept on purpose is so after another attempt for it',
    making({ problem: unproved }),
    { type: 'unwanted' },
    { state: { kind: 'stuck', problem: unproved } },
  ],
  [
    'a revoke goes on',
    undoing({}, { isWorking: true }),
    { type: 'unwanted' },
    { state: { kind: 'revoking', isWorking: true } },
  ],
  ["nobody revokes what is another process's", foreign, { type: 'unwanted' }, undefined],

  [
    'a claim gets back what it wants, once that is written',
    undoing({}, { isWaitRecorded: true }),
    { type: 'wanted' },
    { state: { kind: 'creating' }, write: 'ensure' },
  ],
  [
    'a deletion that was sent is completed',
    removing(),
    { type: 'wanted' },
    { state: { kind: 'deleting', isSent: true }, write: 'none' },
  ],
  [
    'a deletion that was not sent is given up',
    removing({}, { isSent: false }),
    { type: 'wanted' },
    { state: { kind: 'creating' }, write: 'ensure' },
  ],
  [
    'an operator need not delete what the claim wants',
    left(removing({}, { isSent: false })),
    { type: 'wanted' },
    { state: { kind: 'stuck', was: { kind: 'creating' } }, write: 'ensure' },
  ],
  ["what is another process's stays so", foreign, { type: 'wanted' }, { state: { kind: 'foreign' }, write: 'none' }],

  ['the revoker is at work', undoing(), { type: 'work-begun' }, { state: { kind: 'revoking', isWorking: true } }],
  ['the revoker works on nothing that a claim wants', making(), { type: 'work-begun' }, undefined],
  [
    'the revoker has finished',
    removing({}, { isWorking: true }),
    { type: 'work-ended' },
    { state: { kind: 'deleting', isWorking: false } },
  ],

  [
    'a look takes back what is recorded of a wait',
    undoing({}, { isWaitRecorded: true }),
    { type: 'looks' },
    { state: { kind: 'revoking', isUnclear: true, isWaitRecorded: false }, write: 'ensure' },
  ],
  ['nobody looks for what is being deleted', removing(), { type: 'looks' }, undefined],

  [
    'a wait is recorded for a claim that is gone',
    undoing({ calls: late }),
    { type: 'waits', isClaimGone: true },
    { state: { isWaitRecorded: true }, write: 'ensure' },
  ],
  [
    'no wait is recorded for a claim that is there',
    undoing({ calls: late }),
    { type: 'waits', isClaimGone: false },
    { state: { isWaitRecorded: false }, write: 'ensure' },
  ],
  [
    'no wait is recorded that another process may break',
    undoing({ calls: late, isShared: true }),
    { type: 'waits', isClaimGone: true },
    { state: { isWaitRecorded: false } },
  ],
  [
    'no wait is recorded that has no end',
    undoing({ calls: unread }),
    { type: 'waits', isClaimGone: true },
    { state: { isWaitRecorded: false } },
  ],
  [
    'what has its storage named is not stuck any more',
    undoing({ storage: current, problem }, { proofSinceMs: 1 }),
    { type: 'waits', isClaimGone: true },
    { state: { problem: undefined, proofSinceMs: undefined } },
  ],

  [
    'a deletion when nothing can be late is the last',
    undoing(),
    { type: 'deletes', handle: 'h' },
    { state: { kind: 'deleting', storage: current, isLast: true, isSent: false }, write: 'put' },
  ],
  [
    'a deletion while a call may be late is not',
    { ...creating(begun({ calls: late })), isCalling: true },
    { type: 'deletes', handle: 'h' },
    { state: { kind: 'deleting', isLast: false, isSent: false, isWorking: true }, write: 'put' },
  ],
  [
    'a deletion while a save may be late is not',
    undoing({ saves: { ...noSaves, endMs: lateMs } }),
    { type: 'deletes', handle: 'h' },
    { state: { kind: 'deleting', isLast: false } },
  ],
  [
    'a deletion that is repeated is what the first one was',
    removing({ calls: late, problem }),
    { type: 'deletes', handle: 'h' },
    { state: { kind: 'deleting', isLast: true, isSent: true, problem: undefined }, write: 'put' },
  ],
  ['nothing is deleted that is left to an operator', left(making()), { type: 'deletes', handle: 'h' }, undefined],

  [
    'a deletion is sent',
    removing({}, { isSent: false }),
    { type: 'delete-sent' },
    { state: { kind: 'deleting', isSent: true } },
  ],
  ['no deletion is sent before it is recorded', undoing(), { type: 'delete-sent' }, undefined],

  [
    'nothing is left after the last deletion',
    removing({ calls: late }),
    { type: 'nothing-left', isWanted: false },
    { state: { kind: 'deleting' }, isDone: true },
  ],
  [
    'a late call may recreate what was deleted before',
    removing({}, { isLast: false }),
    { type: 'nothing-left', isWanted: false },
    { state: { kind: 'revoking', storage: undefined, isUnclear: true }, write: 'ensure', isDone: false },
  ],
  [
    'the claim gets another one after that',
    removing({}, { isLast: false }),
    { type: 'nothing-left', isWanted: true },
    { state: { kind: 'creating', storage: undefined, isUnclear: true }, write: 'ensure', isDone: false },
  ],
  [
    'nothing is there, and nothing can be late',
    undoing(),
    { type: 'nothing-left', isWanted: false },
    { state: { kind: 'revoking' }, isDone: true },
  ],
  [
    'nothing is there, but a call may be late',
    making({ calls: late }),
    { type: 'nothing-left', isWanted: true },
    { state: { kind: 'creating' }, isDone: false },
  ],

  [
    'a proof may still be read',
    undoing(),
    { type: 'proof-pending', text },
    { state: { kind: 'revoking', proofSinceMs: nowMs } },
  ],
  [
    'a proof that was not read for long is given up',
    undoing({}, { proofSinceMs: nowMs - maxProofMs }),
    { type: 'proof-pending', text },
    { state: { kind: 'stuck', problem: { reason: 'unproved', text } }, write: 'note' },
  ],

  [
    'a backend that refuses may do it later',
    undoing(),
    { type: 'refused', text, isUndecidable: false },
    { state: { kind: 'revoking', refusedSinceMs: nowMs } },
  ],
  [
    'a backend that has refused for half an hour leaves it to an operator',
    undoing({}, { refusedSinceMs: nowMs - 30 * 60_000 }),
    { type: 'refused', text, isUndecidable: false },
    { state: { kind: 'stuck', problem: { reason: 'undecidable', text } }, write: 'note' },
  ],
  [
    'what is being deleted is there, however long that is refused',
    removing({}, { refusedSinceMs: 0 }),
    { type: 'refused', text, isUndecidable: false },
    { state: { kind: 'deleting' } },
  ],
  [
    'a backend that will never say leaves it to an operator at once',
    removing({}, { isWorking: true }),
    { type: 'refused', text, isUndecidable: true },
    { state: { kind: 'stuck', was: { kind: 'deleting', isWorking: false } } },
  ],

  [
    'what an operator decides stays as it was',
    undoing({}, { isWorking: true }),
    { type: 'stuck', reason: 'restored', text },
    {
      state: { kind: 'stuck', problem: { reason: 'restored', text }, was: { kind: 'revoking', isWorking: false } },
      write: 'note',
    },
  ],
  [
    'of what may be kept on purpose no deletion is completed',
    removing(),
    { type: 'stuck', reason: 'unproved', text },
    { state: { kind: 'stuck', was: { kind: 'creating' } } },
  ],
  [
    'a problem keeps the words in which it was found',
    left(undoing()),
    { type: 'stuck', reason: 'undecidable', text },
    { state: { kind: 'stuck', problem } },
  ],
  [
    'a claim goes on with what may be kept on purpose, though that is found once more',
    making({ problem: unproved }),
    { type: 'stuck', reason: 'unproved', text },
    { state: { kind: 'creating', problem: unproved }, write: 'none' },
  ],
  ["what is another process's is not stuck here", foreign, { type: 'stuck', reason: 'undecidable', text }, undefined],

  [
    'what is taken over may have sent anything, and goes on for a while',
    foreign,
    { type: 'taken-over' },
    {
      state: {
        kind: 'creating',
        mayExist: true,
        isShared: true,
        isUnclear: true,
        isAlone: false,
        problem,
        calls: { sinceMs: nowMs, endMs: nowMs + 25_000 },
        saves: { isSent: true },
      },
      write: 'put',
    },
  ],
  ['nobody takes over what is his own', making(), { type: 'taken-over' }, undefined],

  [
    'what another process has closed is recorded again, with anything sent',
    making({ saves: noSaves, isAlone: true, storage: current }),
    { type: 'reopened' },
    {
      state: {
        kind: 'creating',
        mayExist: true,
        isShared: true,
        isUnclear: true,
        isAlone: false,
        storage: { handle: 'h', isCurrent: false },
        saves: { isSent: true },
        calls: { endMs: nowMs + 25_000 },
      },
      write: 'put',
    },
  ],
  [
    'what was saved here meanwhile is recorded again',
    saved,
    { type: 'reopened' },
    { state: { kind: 'creating', mayExist: true, storage: undefined }, write: 'put' },
  ],

  [
    'calls that are read at once have ended',
    making({ calls: unread }),
    { type: 'read', untilMs: Infinity },
    { state: { calls: { unread: undefined, endMs: -Infinity } } },
  ],
  [
    'calls that are read late begin then',
    undoing({ calls: { ...noCalls, unread: { firstMs: 0, lastMs: 0 } } }),
    { type: 'read', untilMs: Infinity },
    { state: { calls: { unread: undefined, sinceMs: nowMs, endMs: nowMs + 25_000 } } },
  ],
  [
    'calls that were given up since are not read',
    making({ calls: unread }),
    { type: 'read', untilMs: nowMs },
    { state: { calls: unread } },
  ],
  [
    'calls of what is stuck are read, too',
    left(making({ calls: unread })),
    { type: 'read', untilMs: Infinity },
    { state: { kind: 'stuck', was: { calls: { unread: undefined } } } },
  ],
];

function check([, from, event, want]: Row): void {
  const result = next(from, event, time);
  if (want === undefined) assert.equal(result, undefined);
  else assert.partialDeepStrictEqual(result, { isDone: false, ...want });
}

describe('the next state of an intent', () => {
  for (const row of rows) test(`${row[2].type}: ${row[0]}`, () => check(row));

  test('of a first attempt: what was not sent cannot be there', () => {
    const state = creating(unsent);
    assert.partialDeepStrictEqual(next(state, { type: 'called' }, time)?.state, { mayExist: true });
  });
});

describe('the diagram in docs/architecture.md', () => {
  const arrows = async (): Promise<string[]> => {
    const page = await readFile(path.join(import.meta.dirname, '../../../../docs/architecture.md'), 'utf8');
    const [, diagram = ''] = /^stateDiagram-v2\n(.*?)^```/ms.exec(page) ?? [];
    return Array.from(diagram.matchAll(/^ +(\S+ --> \S+?): (.+)$/gm), ([, arrow = '', why = '']) =>
      arrow.startsWith('[*]') ? `${arrow} ${why}` : arrow,
    ).sort();
  };

  test('has each change of a state, and each state in which a record is found', async () => {
    const changes = new Set(['[*] --> recording planned']);
    for (const [, from] of rows) {
      for (const [, , event] of rows) {
        const result = next(from, event, time);
        const to = result?.isDone === true ? '[*]' : result?.state.kind;
        if (to !== undefined && to !== from.kind) changes.add(`${from.kind} --> ${to}`);
      }
    }
    for (const phase of intentPhases) {
      for (const owner of ['own', 'foreign'] as const) {
        const record = { phase, handle: 'h' } as IntentRecord;
        changes.add(`[*] --> ${foundIntent({ record, owner }, undefined, time).state.kind} found`);
      }
    }
    assert.deepEqual(await arrows(), [...changes].sort());
  });
});

const types = Object.keys(transitions) as IntentEvent['type'][];
const breaks: Record<string, (state: IntentState, intact: () => Next | undefined) => Next | undefined> = {
  'changes nothing': (state) => ({ state, write: 'none', isDone: false }),
  'is not expected': () => undefined,
  'is never done': (_state, intact) => {
    const result = intact();
    return result && { ...result, isDone: false };
  },
  'writes nothing': (_state, intact) => {
    const result = intact();
    return result && { ...result, write: 'none' };
  },
};

describe('a transition that is broken fails a row', () => {
  for (const type of types) {
    const own = rows.filter(([, , event]) => event.type === type);
    for (const [how, broken] of Object.entries(breaks)) {
      const changes = own.some(([, from, event]) => {
        const intact = next(from, event, time);
        return JSON.stringify(broken(from, () => intact)) !== JSON.stringify(intact);
      });
      if (!changes) continue; // it is never done, or writes nothing, as it is
      test(`${type} that ${how}`, () => {
        const intact = transitions[type] as (...given: [IntentState, IntentEvent, typeof time]) => Next | undefined;
        Object.assign(transitions, {
          [type]: (...given: Parameters<typeof intact>) => broken(given[0], () => intact(...given)),
        });
        try {
          assert.throws(() => own.forEach(check), assert.AssertionError);
        } finally {
          Object.assign(transitions, { [type]: intact });
        }
      });
    }
  }

  test('of each kind of event there is one', () => {
    assert.deepEqual(new Set(rows.map(([, , event]) => event.type)), new Set(types));
  });
});
