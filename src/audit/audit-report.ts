/** An audit as a table, or as JSON. */
import { printable } from '../base/printable.ts';
import { ageText } from '../base/age-text.ts';
import { capacityText } from '../base/quantity.ts';
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

/** What a report needs beyond the audit. */
export interface ReportContext {
  driver: string;
  /** Now, in milliseconds since the Unix epoch. */
  wallMs: number;
  /** A command to copy; undefined: nothing is to be done. */
  commandFor: (finding: Finding) => string | undefined;
}

/** The audit as data, for programs. */
export function auditJson(
  { driver, wallMs, commandFor }: ReportContext,
  audit: Audit,
  deletions: readonly Deletion[],
): string {
  const { looks, unsettled, incomplete, notes, listed, persistentVolumes, inUse, elsewhere, unchecked } = audit;
  const findings = audit.findings.map((finding) => ({
    ...finding,
    ageSeconds:
      finding.since === undefined ? null : Math.max(0, Math.floor((wallMs - Date.parse(finding.since)) / 1000)),
    capacityBytes: finding.capacityBytes ?? null,
    command: commandFor(finding) ?? null,
  }));
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

const headings = ['STATE', 'VOLUME', 'NAME', 'CLAIM', 'AGE', 'SIZE', 'DETAIL'];
const unknown = 'unknown';

/** The audit as text. */
export function auditText(context: ReportContext, audit: Audit): string {
  const { findings, incomplete, notes } = audit;
  return [
    ...table(findings, context),
    ...incomplete.map((each) => `Not checked: ${printable(each)}.`),
    ...notes.map((each) => `Note: ${printable(each)}.`),
    summary(context.driver, audit),
    '',
  ].join('\n');
}

/** What became of the ids of `--delete`, as text. */
export function deletionText({ volumeId, result, detail }: Deletion): string {
  return `${result}: ${printable(volumeId)}: ${printable(detail)}\n`;
}

/** Each row with its command on a line below, so that it can be copied alone. */
function table(findings: readonly Finding[], { wallMs, commandFor }: ReportContext): string[] {
  if (findings.length === 0) return [];
  const [heading = '', ...rows] = textTable([headings, ...findings.map((finding) => cells(finding, wallMs))]);
  const lines = findings.flatMap((finding, index) => {
    const command = commandFor(finding);
    return [rows[index] ?? '', ...(command === undefined ? [] : [`    ${command}`])];
  });
  return [heading, ...lines, ''];
}

function cells(finding: Finding, wallMs: number): string[] {
  const { state, volumeId, volumeName, persistentVolumes = [], claim, since, capacityBytes, detail } = finding;
  const age = since === undefined ? unknown : ageText(wallMs - Date.parse(since));
  const size = capacityBytes === undefined ? unknown : capacityText(BigInt(capacityBytes));
  return [state, volumeId, volumeName ?? persistentVolumes.join(','), claim, age, size, detail].map(
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
