/** The guards against leaks and deletions, each broken in turn, with commands that come across the gap soon. */
import { errorFromStatus } from '../../../../../src/kube/client/error-from-status.ts';
import type {
  IntentJournal,
  IntentPhase,
  JournalListener,
} from '../../../../../src/provision/intent-journal/intent-journal.ts';
import type { Time } from '../../../../../src/provision/intents/earlier-requests.ts';
import {
  type IntentEvent,
  type IntentState,
  type Next,
  transitions,
} from '../../../../../src/provision/intents/intent-state.ts';
import type { CommandChoice } from './commands.ts';
import type { BrokenGuards } from './sim-process.ts';

export interface BrokenCase {
  without: string;
  broken: BrokenGuards;
  commands: CommandChoice;
  /** What breaks. Default: a leak, or a deletion. */
  finds?: RegExp;
  /** One process at a time; undefined: with and without. */
  election?: boolean;
}

/** A journal in which some things are done in another way. */
function changed(journal: IntentJournal, changes: Partial<IntentJournal>): IntentJournal {
  return {
    permit: journal.permit,
    isDraining: false,
    open: (listener, signal) => journal.open(listener, signal),
    run: (signal) => journal.run(signal),
    put: (record, signal) => journal.put(record, signal),
    note: (record) => journal.note(record),
    renewSince: (uid, since) => journal.renewSince(uid, since),
    remove: (uid) => journal.remove(uid),
    removeNow: (uid, signal) => journal.removeNow(uid, signal),
    flush: (signal) => journal.flush(signal),
    ...changes,
  };
}

/** Records are written some time later, and nobody waits for that. */
function notDurable(journal: IntentJournal): IntentJournal {
  return changed(journal, {
    put: (record, signal) => {
      journal.put(record, signal).catch(() => undefined);
      return Promise.resolve('durable');
    },
  });
}

/** Records of a phase are not written. */
function without(phase: IntentPhase): (journal: IntentJournal) => IntentJournal {
  return (journal) =>
    changed(journal, {
      put: (record, signal) => (record.phase === phase ? Promise.resolve('durable') : journal.put(record, signal)),
    });
}

/** The record of each deletion says that it was quiet when that was first sent. */
function alwaysQuiet(journal: IntentJournal): IntentJournal {
  return changed(journal, {
    put: (record, signal) => journal.put(record.phase === 'delete' ? { ...record, quietInMs: 0 } : record, signal),
  });
}

/** A transition whose result is another one. */
function other(type: IntentEvent['type'], change: (result: Next, state: IntentState) => Next): BrokenGuards {
  const intact = transitions[type] as (state: IntentState, event: IntentEvent, time: Time) => Next | undefined;
  const broken: typeof intact = (state, event, time) => {
    const result = intact(state, event, time);
    return result && change(result, state);
  };
  return { transitions: { [type]: broken } };
}

/** An event that changes nothing of these fields. */
function keeping(type: IntentEvent['type'], fields: readonly string[]): BrokenGuards {
  return other(type, (result, state) => {
    const kept = Object.entries(state).filter(([name]) => fields.includes(name));
    return { ...result, state: { ...result.state, ...Object.fromEntries(kept) } };
  });
}

/** A record that is taken over has no version, as those of older releases, and that counts as the version of now. */
function sinceTakeOver(journal: IntentJournal, version: () => string): IntentJournal {
  return changed(journal, {
    open: (listener, signal) => {
      const onFound: JournalListener['onFound'] = (found) =>
        listener.onFound({ ...found, record: { ...found.record, since: version() } });
      return journal.open({ ...listener, onFound }, signal);
    },
  });
}

/** A call that takes long waits at a backend that stalls. */
const stalled = [
  'the next CreateVolume: late',
  'create claim 0 of class delete',
  'until CreateVolume is sent',
  'the backend stalls',
] as const;

/** A call that takes long has had no clear result, and another one with this fault follows. */
function lateThen(fault: string): string[] {
  return [
    'the next CreateVolume: late',
    'create claim 0 of class delete',
    'everything is answered',
    `the next CreateVolume: ${fault}`,
  ];
}

export const brokenCases: BrokenCase[] = [
  {
    without: 'the history of the volumes',
    broken: { hides: ({ query }, { type }) => Number(query?.['timeoutSeconds']) < 10 && type !== 'BOOKMARK' },
    commands: {
      texts: [
        'create claim 0 of class delete',
        'crash once create persistentvolumes is executed',
        'an administrator keeps the storage of volume 0',
        'start',
        '21000 ms pass',
      ],
      maxCommands: 10,
    },
    finds: /revoke: .* is deleted though/,
  },
  {
    without: 'the rule that a record without a version proves nothing',
    broken: { journal: sinceTakeOver },
    commands: {
      texts: [
        'create claim 0 of class delete',
        'crash once create persistentvolumes is executed',
        'an administrator keeps the storage of volume 0',
        'start',
        '21000 ms pass',
      ],
      maxCommands: 10,
    },
    finds: /revoke: .* is deleted though/,
  },
  {
    without: 'the wait after a take-over',
    broken: { maxCallMs: 1 },
    commands: {
      first: ['create claim 0 of class delete', 'crash once CreateVolume is sent'],
      texts: ['delete claim 0', 'start', '3000 ms pass'],
      maxCommands: 10,
    },
    election: true,
  },
  {
    without: 'the wait after a call that had no clear result',
    broken: keeping('unclear', ['calls']),
    commands: {
      first: ['the next CreateVolume: late', 'create claim 0 of class delete'],
      texts: ['delete claim 0', 'everything is answered', '3000 ms pass'],
      maxCommands: 8,
    },
  },
  {
    without: 'a record that no longer says how long to wait when storage is looked for',
    broken: other('looks', (_, state) => ({ state, write: 'none', isDone: false })),
    commands: {
      first: [
        'the next CreateVolume: background-failed',
        'create claim 0 of class delete',
        'everything is answered',
        'delete claim 0',
        'everything is answered',
        '21000 ms pass',
        '3000 ms pass',
        '3000 ms pass',
        'the next CreateVolume: late',
        '3000 ms pass without an answer',
        'crash once CreateVolume is executed, start again',
      ],
      texts: ['16000 ms pass'],
      maxCommands: 1,
    },
    election: true,
  },
  {
    without: 'a record that stays open after a deletion that a late call may follow',
    broken: other('deletes', ({ state, ...rest }) => ({ ...rest, state: { ...state, isLast: true } as IntentState })),
    commands: { first: [...lateThen('unfit'), '16000 ms pass'], texts: ['delete claim 0'], maxCommands: 1 },
  },
  {
    without: 'a second report that there is no room, after every call has ended',
    broken: other('no-room', (result) => ({ ...result, isDone: true })),
    commands: { first: [...lateThen('exhausted'), '16000 ms pass'], texts: ['delete claim 0'], maxCommands: 1 },
  },
  {
    without: 'the note that the PersistentVolume may have been sent',
    broken: {
      transitions: { ...keeping('save-sent', ['saves']).transitions, ...keeping('save-ended', ['saves']).transitions },
    },
    commands: {
      first: [
        'create claim 0 of class delete',
        'until create persistentvolumes is executed',
        'the watches are held',
        'connection 0 breaks',
        'an administrator keeps the storage of volume 0',
      ],
      texts: ['3000 ms pass', 'Kubernetes binds', 'the watches go on', 'everything is answered'],
      maxCommands: 8,
    },
    finds: /is to be kept|is deleted though/,
  },
  {
    without: 'a wait until a stalled backend has begun what was given up',
    broken: { noProgress: true },
    commands: {
      first: stalled,
      texts: [
        'delete claim 0',
        '61000 ms pass',
        '21000 ms pass',
        'the backend goes on',
        'everything is answered',
        '3000 ms pass',
      ],
      maxCommands: 12,
    },
  },
  {
    without: 'a wait where a backend has stalled for four seconds after a call was given up',
    broken: { noProgress: true },
    commands: {
      first: [
        ...stalled,
        '21000 ms pass',
        '3000 ms pass',
        'the backend goes on',
        'everything is answered',
        'delete claim 0',
        'everything is answered',
      ],
      texts: ['3000 ms pass'],
      maxCommands: 2,
    },
  },
  {
    without: 'the wait where a late call may follow a recorded deletion',
    broken: { journal: alwaysQuiet },
    commands: {
      first: [
        ...lateThen('unfit'),
        '16000 ms pass without an answer',
        'until DeleteVolume is sent',
        '1000 ms pass without an answer',
        'delete claim 0',
        'crash once DeleteVolume is executed, start again',
      ],
      texts: ['1000 ms pass'],
      maxCommands: 3,
    },
    election: true,
  },
  {
    without: 'a record of each deletion before it is sent',
    broken: { journal: without('delete') },
    commands: {
      first: [
        'the next CreateVolume: made-unclear',
        'create claim 0 of class delete',
        'everything is answered',
        'hand to another provisioner: claim 0',
        'everything is answered',
        '21000 ms pass',
        '3000 ms pass',
        '3000 ms pass',
        '3000 ms pass without an answer',
        'until DeleteVolume is sent',
        '1000 ms pass without an answer',
        '1000 ms pass without an answer',
        'crash once DeleteVolume is sent',
      ],
      texts: ['hand back: claim 0', 'start'],
      maxCommands: 4,
    },
    election: true,
  },
  {
    without: 'the plan that was recorded',
    broken: { plansAnew: true },
    commands: {
      texts: [
        'create claim 0 of class delete',
        'select node "n1": claim 0',
        'select node "n2": claim 0',
        'the next CreateVolume: background',
        'everything is answered',
        '3000 ms pass',
      ],
      maxCommands: 10,
    },
    finds: /is requested from other arguments/,
  },
  {
    without: 'names that are unique',
    broken: { repeatsUids: true },
    commands: {
      first: ['create claim 0 of class retain', 'everything is answered'],
      texts: [
        'create claim 0 of class retain',
        'an administrator keeps the storage of volume 0',
        'the next CreateVolume: made-unclear',
        'hand to another provisioner: claim 0',
        'everything is answered',
        '21000 ms pass',
      ],
      maxCommands: 14,
    },
    finds: /revoke: .* is to be kept/,
  },
  {
    without: 'the live look at the claim',
    broken: {
      shown: ({ info }, answer) => {
        if (info.verb !== 'get' || info.resource.plural !== 'persistentvolumeclaims') return answer;
        throw errorFromStatus({ code: 404, reason: 'NotFound', details: { name: info.name ?? '' } }, info);
      },
    },
    commands: {
      first: [
        'the next CreateVolume: made-unclear',
        'create claim 0 of class delete',
        'everything is answered',
        'hand to another provisioner: claim 0',
        'everything is answered',
        'the watches are held',
      ],
      texts: ['hand back: claim 0', '21000 ms pass'],
      maxCommands: 6,
    },
  },
  {
    without: 'a durable record before CreateVolume',
    broken: { journal: notDurable },
    commands: {
      first: ['create claim 0 of class delete', 'delete claim 0'],
      texts: ['create claim 0 of class delete', 'delete claim 0', 'crash once CreateVolume is executed', 'start'],
      maxCommands: 8,
    },
  },
  {
    without: 'another attempt after a final failure that follows an unclear one',
    broken: { believesFirstFinal: true },
    commands: {
      first: [
        'the next CreateVolume: made-unclear',
        'create claim 0 of class delete',
        'everything is answered',
        'pause 0', // so that the next attempt comes when no earlier call can be under way any more
        '61000 ms pass',
        'the next CreateVolume: internal',
      ],
      texts: ['the paused go on', 'everything is answered', 'delete claim 0', '3000 ms pass'],
      maxCommands: 12,
    },
  },
  {
    without: 'conflicts between the writes of two leaders',
    broken: {
      sent: ({ info: { verb, resource }, body }) => {
        if (verb !== 'update' || resource.plural !== 'leases') return body;
        const { metadata, ...rest } = body as { metadata: object };
        return { ...rest, metadata: { ...metadata, resourceVersion: '' } };
      },
    },
    commands: {
      texts: [
        'create claim 0 of class delete',
        'delete claim 0',
        'crash once update leases is sent, start again',
        'start',
        'until CreateVolume is executed',
        'late calls are executed, all crash',
      ],
      maxCommands: 24,
    },
    election: true,
  },
  {
    without: 'a permit for what a process sends after a pause',
    broken: { noPermit: true },
    commands: {
      texts: [
        'create claim 0 of class delete',
        'pause once update leases is executed, another takes over and the claims go',
        'everything is answered',
        'start',
      ],
      maxCommands: 8,
    },
    election: true,
  },
];
