/** The model check bites: with one guard broken it finds a leak, or the deletion of something in use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { errorFromStatus } from '../../../../src/kube/error-from-status.ts';
import type { IntentJournal } from '../../../../src/provision/intent-journal/intent-journal.ts';
import type { Focus } from './model/commands.ts';
import { runModel } from './model/run-model.ts';
import type { BrokenGuards } from './model/sim-process.ts';

/** Records are written some time later, and nobody waits for that. */
function notDurable(journal: IntentJournal): IntentJournal {
  return {
    isDraining: false,
    open: (listener, signal) => journal.open(listener, signal),
    run: (signal) => journal.run(signal),
    put: (record, signal) => {
      journal.put(record, signal).catch(() => undefined);
      return Promise.resolve('durable');
    },
    note: (record) => journal.note(record),
    remove: (uid) => journal.remove(uid),
    removeNow: (uid, signal) => journal.removeNow(uid, signal),
    flush: (signal) => journal.flush(signal),
  };
}

const cases: { without: string; broken: BrokenGuards; focus: Focus; maxRuns: number }[] = [
  {
    without: 'the live look at volumes',
    broken: {
      shown: ({ info: { verb, resource } }, answer) =>
        verb === 'list' && resource.plural === 'persistentvolumes' ? { ...(answer as object), items: [] } : answer,
    },
    focus: 'everything',
    maxRuns: 1000,
  },
  {
    without: 'the live look at the claim',
    broken: {
      shown: ({ info }, answer) => {
        if (info.verb !== 'get' || info.resource.plural !== 'persistentvolumeclaims') return answer;
        throw errorFromStatus({ code: 404, reason: 'NotFound', details: { name: info.name ?? '' } }, info);
      },
    },
    focus: 'secondThoughts',
    maxRuns: 2000,
  },
  {
    without: 'a permit for what a process sends after a pause',
    broken: { noPermit: true },
    focus: 'pauses',
    maxRuns: 1000,
  },
  { without: 'the delay after a take-over', broken: { maxCallMs: 0 }, focus: 'takeOvers', maxRuns: 1000 },
  {
    without: 'a durable record before CreateVolume',
    broken: { journal: notDurable },
    focus: 'everything',
    maxRuns: 1000,
  },
  {
    without: 'a second look after a final failure that follows an unclear one',
    broken: { believesFirstFinal: true },
    focus: 'failures',
    maxRuns: 1000,
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
    focus: 'lateWrites',
    maxRuns: 3000,
  },
];

for (const { without, broken, focus, maxRuns } of cases) {
  test(`without ${without} a sequence is found that leaks a volume or deletes one in use`, async (t) => {
    const elections = ['takeOvers', 'lateWrites', 'pauses'].includes(focus) ? fc.constant(true) : fc.boolean();
    const details = await runModel({ broken, focus, numRuns: maxRuns, seed: 42, endOnFailure: true, elections });
    t.diagnostic(`found after ${details.numRuns} sequences`);
    assert.match(String(details.errorInstance), /is left behind|is deleted though/);
  });
}
