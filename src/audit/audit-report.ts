/** An audit as a table, or as JSON. */
import { printable } from '../base/printable.ts';
import { textTable } from '../base/text-table.ts';
import type { Audit } from './audit.ts';
import { type Finding, troubles } from './finding.ts';

/** What became of one id of `--delete`. */
export interface Deletion {
  volumeId: string;
  result: 'deleted' | 'refused' | 'failed';
  detail: string;
}

/** Exit codes: nothing to do; wrong arguments or a refused deletion; something needs attention; not everything could be checked. */
export const auditCodes = { clean: 0, usage: 1, trouble: 2, unknown: 3 } as const;

/** @param deletions - a volume that was deleted no longer counts as trouble. */
export function exitCodeOf({ findings, incomplete }: Audit, deletions: readonly Deletion[]): number {
  const deleted = new Set(deletions.filter(({ result }) => result === 'deleted').map(({ volumeId }) => volumeId));
  const left = findings.filter(({ state, volumeId = '' }) => troubles.has(state) && !deleted.has(volumeId));
  if (deletions.some(({ result }) => result === 'refused')) return auditCodes.usage;
  if (left.length > 0) return auditCodes.trouble;
  return incomplete.length > 0 || deletions.some(({ result }) => result === 'failed')
    ? auditCodes.unknown
    : auditCodes.clean;
}

/** The audit as data, for programs. */
export function auditJson(driver: string, audit: Audit, deletions: readonly Deletion[]): string {
  const { looks, unsettled, findings, incomplete, notes, listed, persistentVolumes, inUse, elsewhere, unchecked } =
    audit;
  const counts = {
    driverVolumes: listed ?? null,
    persistentVolumes,
    inUse,
    otherNodes: elsewhere,
    unchecked,
    records: audit.records.length,
    unsettled,
  };
  return `${JSON.stringify({ driver, looks, counts, findings, incomplete, notes, deletions }, null, 2)}\n`;
}

const headings = ['STATE', 'VOLUME', 'NAME', 'CLAIM', 'SINCE', 'DETAIL'];

/** The audit for people. */
export function auditText(driver: string, audit: Audit): string {
  const { findings, incomplete, notes } = audit;
  return [
    ...(findings.length > 0 ? [...textTable([headings, ...findings.map(cells)]), ''] : []),
    ...incomplete.map((each) => `Not checked: ${printable(each)}.`),
    ...notes.map((each) => `Note: ${printable(each)}.`),
    summary(driver, audit),
    '',
  ].join('\n');
}

/** What became of the ids of `--delete`, for people. */
export function deletionText({ volumeId, result, detail }: Deletion): string {
  return `${result}: ${printable(volumeId)}: ${printable(detail)}\n`;
}

function cells({ state, volumeId, volumeName, persistentVolumes = [], claim, since, detail }: Finding): string[] {
  return [state, volumeId, volumeName ?? persistentVolumes.join(','), claim, since, detail].map(
    (text = '') => printable(text) || '-',
  );
}

function summary(driver: string, audit: Audit): string {
  const { listed, persistentVolumes, inUse, elsewhere, unchecked, records, looks, unsettled } = audit;
  const parts = [
    listed === undefined ? 'driver volumes: not listed' : `driver volumes: ${listed}`,
    `PersistentVolumes: ${persistentVolumes}, of which with storage: ${inUse}`,
    ...(elsewhere > 0 ? [`of other nodes: ${elsewhere}`] : []),
    ...(unchecked > 0 ? [`not checked: ${unchecked}`] : []),
    `records: ${records.length}`,
    ...(unsettled > 0 ? [`left out, as only one of two looks found them: ${unsettled}`] : []),
  ];
  const problems = audit.findings.filter(({ state }) => troubles.has(state)).length;
  const clean =
    audit.incomplete.length > 0
      ? 'nothing that needs attention was found, but not everything could be checked'
      : 'nothing needs attention';
  const verdict = problems > 0 ? `findings that need attention: ${problems}` : clean;
  return `${printable(driver)}: ${verdict} (${parts.join('; ')}; ${looks === 1 ? 'one look' : 'two looks'}).`;
}
