/** What a record waits for, as far as the record itself says so. */
import type { StoredRecord } from './read-journal.ts';
import type { IntentRecord } from './intent-record.ts';

/** Whether the sidecar does nothing about it: an operator decides. */
export function needsOperator({ record, reportOnly }: Pick<StoredRecord, 'record' | 'reportOnly'>): boolean {
  return isReported(record) || reportOnly !== '';
}

/** One clause, without a full stop. */
export function recordState({ record, reportOnly }: Pick<StoredRecord, 'record' | 'reportOnly'>): string {
  if (reportOnly !== '') return `only reported: ${reportOnly}`;
  return isReported(record) ? (record.problem ?? 'no reason is recorded') : phaseTexts[record.phase];
}

function isReported({ phase }: IntentRecord): boolean {
  return phase === 'stuck' || phase === 'unproved';
}

const phaseTexts = {
  create: 'the driver is creating it, or is about to',
  unclear: 'an attempt ended without a clear result, and is being retried',
  delete: 'no claim needs it, and it is being deleted',
  revoked: 'it was deleted, and is looked for once more',
  unproved: '',
  stuck: '',
} as const;
