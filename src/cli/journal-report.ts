/** Records of the intent journal as a table, or as JSON. */
import { ageText } from '../base/age-text.ts';
import { printable } from '../base/printable.ts';
import { textTable } from '../base/text-table.ts';
import {
  needsOperator,
  type ReadJournal,
  recordState,
  type StoredRecord,
} from '../provision/intent-journal/read-journal.ts';

/** One record, for programs. */
export interface ListedRecord {
  /** `namespace/name`. */
  claim: string;
  uid: string;
  volume: string;
  handle?: string;
  phase: string;
  /** RFC 3339. */
  createdAt: string;
  needsOperator: boolean;
  waitsFor: string;
}

export function listedRecord(stored: StoredRecord): ListedRecord {
  const { claim, volume, handle, phase, createdAt } = stored.record;
  return {
    claim: `${claim.namespace}/${claim.name}`,
    uid: claim.uid,
    volume: volume.name,
    ...(handle !== undefined && { handle }),
    phase,
    createdAt,
    needsOperator: needsOperator(stored),
    waitsFor: recordState(stored),
  };
}

const headings = ['CLAIM', 'UID', 'VOLUME', 'PHASE', 'AGE', 'WAITS FOR'];

/** For people: a table, what could not be read, and a summary. */
export function journalText(journal: ReadJournal, { place, wallMs }: { place: string; wallMs: number }): string {
  const { records, unreadable, drain } = journal;
  const listed = records.map(listedRecord);
  const rows = listed.map(({ claim, uid, volume, phase, createdAt, waitsFor }) =>
    [claim, uid, volume, phase, ageText(wallMs - Date.parse(createdAt)), waitsFor].map(printable),
  );
  const count = listed.filter((each) => each.needsOperator).length;
  const parts = [
    `open records: ${records.length}`,
    ...(count > 0 ? [`of which need an operator: ${count}`] : []),
    ...(drain === '' ? [] : [`drained since ${printable(drain)}: no new volume is begun`]),
  ];
  return [
    ...(rows.length > 0 ? [...textTable([headings, ...rows]), ''] : []),
    ...unreadable.map((each) => `Not readable: ${printable(each)}.`),
    `${place}: ${parts.join('; ')}.`,
    '',
  ].join('\n');
}
