/** `csi-provisioner journal`: what the intent journal holds, and what an operator may have the sidecar do with it. */
import { randomUUID } from 'node:crypto';
import { CannotReadError } from '../audit/audit-errors.ts';
import { ageText } from '../base/age-text.ts';
import { systemClock } from '../base/clock.ts';
import { printable } from '../base/printable.ts';
import type { Progress } from '../base/progress.ts';
import { textTable } from '../base/text-table.ts';
import { isProvisionerOf } from '../csi/migration/in-tree-plugins.ts';
import { ApiError, TransportError } from '../kube/client/api-error.ts';
import { KubeClient } from '../kube/client/kube-client.ts';
import {
  discardRecord,
  JournalFullError,
  JournalInUseError,
  markDrained,
  moveRecord,
  readSilentJournal,
} from '../provision/intent-journal/edit-journal.ts';
import type { IntentPhase, StuckReason } from '../provision/intent-journal/intent-journal.ts';
import {
  isStuck,
  type ReadJournal,
  readJournal,
  recordState,
  type StoredRecord,
} from '../provision/intent-journal/read-journal.ts';
import type { JournalLocation } from '../provision/intent-journal/shard-storage.ts';
import { auditedDriver, auditLogger, connectAsSidecar } from './sidecar-connections.ts';
import { type JournalArguments, journalArguments } from './journal-arguments.ts';
import { fieldManager } from './kubernetes.ts';
import { journalObjects } from './features/journal-features.ts';
import { isAgreedTo, stderrProgress, type SubcommandCall, SubcommandError, usageError } from './subcommand-call.ts';

const codes = { done: 0, usage: 1, left: 2, failed: 3 } as const;

/** How often a journal that is being drained is read, in milliseconds. */
const drainPollMs = 2000;
/** Within this time, in milliseconds, an idle sidecar has read the mark: it reads its journal once a minute. */
const slowestNoticeMs = 75_000;

/** Where the journal is, and how it is read. */
interface Place extends JournalLocation {
  driver: string;
  read: () => Promise<ReadJournal>;
}

/** `list` changes nothing. Safe to repeat. */
export async function manageJournal(call: SubcommandCall): Promise<number> {
  const args = journalArguments(call, { usageCode: codes.usage });
  if (args === undefined) return codes.done;
  if (['discard', 'adopt'].includes(args.action) && !args.isAgreed && call.stdin.isTTY !== true) {
    throw usageError(call, `${args.action} cannot ask for confirmation without a terminal: add --yes`, {
      usageCode: codes.usage,
    });
  }
  const { transport } = connectAsSidecar(call, args, { failureCode: codes.failed });
  await using _transport = transport;
  const progress = stderrProgress(call);
  try {
    const place = await placeOf(call, args, { client: new KubeClient({ transport, fieldManager }), progress });
    progress.clear();
    return await actions[args.action](call, args, { place, progress });
  } catch (error) {
    progress.clear();
    const isFailure = [CannotReadError, JournalFullError, JournalInUseError, ApiError, TransportError].some(
      (each) => error instanceof each,
    );
    if (!isFailure && !call.signal.aborted) throw error;
    const { message } = (call.signal.aborted ? call.signal.reason : error) as Error;
    throw new SubcommandError(`the journal cannot be read or written: ${message}`, {
      exitCode: codes.failed,
      cause: error,
    });
  }
}

/** @throws {CannotReadError} when the driver's name is not known, or there is no journal. */
async function placeOf(
  call: SubcommandCall,
  { config, driver }: JournalArguments,
  { client, progress }: { client: KubeClient; progress: Progress },
): Promise<Place> {
  const name = driver ?? (await driverName(call, config, progress));
  const objects = journalObjects({ config, driver: { name } });
  if (objects === undefined) throw new CannotReadError('--intent-journal=off: there is no journal');
  const { namespace, lockName } = objects;
  const location = { client, namespace, lockName };
  const isKnownProvisioner = isProvisionerOf(name);
  return {
    ...location,
    driver: name,
    read: async () => {
      const journal = await readJournal({ ...location, isKnownProvisioner, clock: systemClock });
      if (journal.exists) return journal;
      throw new CannotReadError(
        `there is no Lease ${namespace}/${lockName}-journal-0; is --leader-election-namespace that of the sidecar?`,
      );
    },
  };
}

async function driverName(
  call: SubcommandCall,
  config: JournalArguments['config'],
  progress: Progress,
): Promise<string> {
  const ending = new AbortController();
  await using driver = await auditedDriver(config, {
    progress,
    logger: auditLogger(call, config),
    signal: AbortSignal.any([call.signal, ending.signal]),
    onGone: (error) => ending.abort(error),
  });
  return driver.name;
}

type Action = (
  call: SubcommandCall,
  args: JournalArguments,
  parts: { place: Place; progress: Progress },
) => Promise<number>;

const actions: Record<JournalArguments['action'], Action> = {
  list: async ({ stdout }, { output }, { place }) => {
    const journal = await place.read();
    stdout.write(output === 'json' ? listJson(place, journal) : text(place, journal));
    return journal.records.some(isStuck) ? codes.left : codes.done;
  },

  discard: async (call, { uids, isAgreed }, { place }) => {
    const { records } = await place.read();
    const found = uids.map((uid) => ({ uid, stored: records.find(({ record }) => record.claim.uid === uid) }));
    const refused = found.filter(({ stored }) => stored === undefined || !isStuck(stored));
    for (const { uid, stored } of refused) {
      const why = stored === undefined ? 'there is no such record' : 'the sidecar is still working on it';
      call.stderr.write(`${printable(uid)}: ${why}\n`);
    }
    if (refused.length > 0) return codes.usage;
    const ask = {
      heading: 'The sidecar will forget these volumes. If one is left in the storage system, it stays there:',
      items: found.map(({ stored }) => `${stored?.record.volume.name ?? ''} ${stored?.record.handle ?? ''}`.trim()),
      question: 'Discard their records?',
    };
    if (!isAgreed && !(await isAgreedTo(call, ask))) return codes.done;
    for (const { uid, stored } of found) {
      await discardRecord(place, { shard: stored?.shard ?? 0, uid });
      call.stdout.write(`${printable(uid)}: the sidecar discards the record within a minute\n`);
    }
    return codes.done;
  },

  adopt: async (call, { from, silenceMs, isAgreed }, { place, progress }) => {
    if (from === undefined) throw new Error('adopt without --from');
    const { client, driver, namespace, lockName } = place;
    if (from.namespace === namespace && from.lockName === lockName) {
      throw usageError(call, '--from is the journal of the sidecar itself', { usageCode: codes.usage });
    }
    const own = await place.read();
    const isKnownProvisioner = isProvisionerOf(driver);
    const other = { client, ...from };
    progress.at(`Watching ${printable(from.namespace)}/${printable(from.lockName)} for ${silenceMs / 1000} s`);
    const found = await readSilentJournal(
      { ...other, isKnownProvisioner, clock: systemClock },
      { silenceMs, signal: call.signal },
    );
    progress.clear();
    const ask = {
      heading: `The sidecar of ${printable(namespace)}/${printable(lockName)} will finish or undo these volumes:`,
      items: found.records.map(({ record }) => record.volume.name),
      question: 'Take their records over?',
    };
    if (found.records.length > 0 && !isAgreed && !(await isAgreedTo(call, ask))) return codes.done;
    const known = new Set(own.records.map(({ record }) => record.claim.uid));
    const options = { from: other, to: { ...place, shards: own.shards }, known, writer: `adopt-${randomUUID()}` };
    let moved = 0;
    for (const stored of found.records) if (await moveRecord(stored, options)) moved++;
    const left = found.records.length - moved + found.unreadable.length;
    call.stdout.write(`Records taken: ${moved}; left where they are: ${left}.\n`);
    return left === 0 ? codes.done : codes.left;
  },

  drain: async (call, { resume, waitMs }, { place, progress }) => {
    const { shards } = await place.read();
    await markDrained(place, shards, resume ? undefined : new Date(systemClock.wallMs()).toISOString());
    if (resume) {
      call.stdout.write('The sidecar begins new volumes again within a minute.\n');
      return codes.done;
    }
    const untilMs = systemClock.monotonicMs() + waitMs;
    const knownFromMs = systemClock.monotonicMs() + slowestNoticeMs;
    for (;;) {
      const journal = await place.read();
      await markDrained(place, journal.shards, new Date(systemClock.wallMs()).toISOString()); // also those that are new
      const open = journal.records.filter((each) => !isStuck(each)).length;
      // a shard that is created now has no mark: volumes are begun in it until the sidecar reads the other shards again
      const isDone = open === 0 && (journal.missing.length === 0 || systemClock.monotonicMs() >= knownFromMs);
      if (isDone || systemClock.monotonicMs() >= untilMs) {
        progress.clear();
        call.stdout.write(`${text(place, journal)}${drainedText(journal, open)}\n`);
        return isDone && journal.records.length === 0 ? codes.done : codes.left;
      }
      progress.at(open > 0 ? `Waiting for ${open} open records` : 'Waiting until the sidecar has read the mark');
      await systemClock.sleep(drainPollMs, { signal: call.signal });
    }
  },
};

function text({ namespace, lockName }: Place, journal: ReadJournal): string {
  const place = `${printable(namespace)}/${printable(lockName)}`;
  return journalText(journal, { place, wallMs: systemClock.wallMs() });
}

function listJson({ driver, namespace, lockName }: Place, { records, unreadable, drain }: ReadJournal): string {
  const listed = { driver, namespace, lockName, drain, unreadable, records: records.map(listedRecord) };
  return `${JSON.stringify(listed, null, 2)}\n`;
}

function drainedText({ records, missing }: ReadJournal, open: number): string {
  const end = 'New volumes are begun again after: journal drain --resume';
  if (open === 0 && missing.length > 0)
    return `Leases of the journal do not exist: ${missing.length}. A running sidecar may create them, and begin volumes in them for a minute: repeat with a longer --wait. ${end}`;
  if (records.length === 0) return `The journal is empty, and no new volume is begun. ${end}`;
  if (open === 0) return `What is left is stuck, and no new volume is begun. ${end}`;
  return `${open} records are still open: does a sidecar run, and does its driver respond? No new volume is begun. ${end}`;
}

/** One record, for programs. */
export interface ListedRecord {
  /** `namespace/name`. */
  claim: string;
  uid: string;
  volume: string;
  handle?: string;
  /** An operator has to decide about a record in the phase `stuck`. */
  phase: IntentPhase;
  reason?: StuckReason;
  /** RFC 3339. */
  createdAt: string;
  waitsFor: string;
}

function listedRecord(stored: StoredRecord): ListedRecord {
  const { claim, volume, handle, createdAt } = stored.record;
  const { phase, reason, waitsFor } = recordState(stored);
  return {
    claim: `${claim.namespace}/${claim.name}`,
    uid: claim.uid,
    volume: volume.name,
    ...(handle !== undefined && { handle }),
    phase,
    ...(reason !== undefined && { reason }),
    createdAt,
    waitsFor,
  };
}

const headings = ['CLAIM', 'UID', 'VOLUME', 'PHASE', 'AGE', 'WAITS FOR'];

/** For people: a table, what could not be read, and a summary. */
function journalText(journal: ReadJournal, { place, wallMs }: { place: string; wallMs: number }): string {
  const { records, unreadable, drain } = journal;
  const listed = records.map(listedRecord);
  const rows = listed.map(({ claim, uid, volume, phase, reason, createdAt, waitsFor }) => {
    const age = ageText(wallMs - Date.parse(createdAt));
    return [claim, uid, volume, phase, age, reason === undefined ? waitsFor : `${reason}: ${waitsFor}`].map(printable);
  });
  const count = listed.filter(({ phase }) => phase === 'stuck').length;
  const parts = [
    `open records: ${records.length}`,
    ...(count > 0 ? [`of which are stuck: ${count}`] : []),
    ...(drain === '' ? [] : [`drained since ${printable(drain)}: no new volume is begun`]),
  ];
  return [
    ...(rows.length > 0 ? [...textTable([headings, ...rows]), ''] : []),
    ...unreadable.map((each) => `Not readable: ${printable(each)}.`),
    `${place}: ${parts.join('; ')}.`,
    '',
  ].join('\n');
}
