/** What a record waits for, as far as the record itself says so. */
import type { StoredRecord } from './read-journal.ts';
import { isLeftAlonePhase } from './intent-record.ts';

/** Whether the sidecar does nothing about it: an operator decides. */
export function needsOperator({ record, reportOnly }: Pick<StoredRecord, 'record' | 'reportOnly'>): boolean {
  return isLeftAlonePhase(record.phase) || reportOnly !== '';
}

/** One clause, without a full stop. */
export function recordState({ record, reportOnly }: Pick<StoredRecord, 'record' | 'reportOnly'>): string {
  if (reportOnly !== '') return `only reported: ${reportOnly}`;
  const { phase, problem = 'no reason is recorded' } = record;
  return isLeftAlonePhase(phase) ? problem : phaseTexts[phase];
}

const phaseTexts = {
  create: 'the driver is creating it, or is about to',
  unclear: 'an attempt ended without a clear result, and is being retried',
  delete: 'no claim needs it, and it is being deleted',
  revoked: 'it was deleted, and is looked for once more',
  unproved: '',
  stuck: '',
} as const;
