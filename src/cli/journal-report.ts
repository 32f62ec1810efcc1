/** Records of the intent journal as a table, or as JSON. */
import { ageText } from '../base/age-text.ts';
import { printable } from '../base/printable.ts';
import { textTable } from '../base/text-table.ts';
import type { IntentPhase, StuckReason } from '../provision/intent-journal/intent-record.ts';
import { type ReadJournal, recordState, type StoredRecord } from '../provision/intent-journal/read-journal.ts';

/** One record, for programs. */
export interface ListedRecord {
  /** `namespace/name`. */
  claim: string;
  uid: string;
  volume: string;
  handle?: string;
  /** An operator has to decide about a record in the phase `stuck`. */
  phase: IntentPhase;
  /** Why it is stuck. */
  reason?: StuckReason;
  /** RFC 3339. */
  createdAt: string;
  waitsFor: string;
}

export function listedRecord(stored: StoredRecord): ListedRecord {
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
export function journalText(journal: ReadJournal, { place, wallMs }: { place: string; wallMs: number }): string {
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
