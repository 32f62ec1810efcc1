/** An audit of directories as a table, or as JSON. */
import { auditCodes, type Deletion } from '../../src/audit/audit-report.ts';
import { printable } from '../../src/base/printable.ts';
import { textTable } from '../../src/base/text-table.ts';
import type { StorageAudit, StorageFinding } from './storage-audit.ts';

export { auditCodes, type Deletion } from '../../src/audit/audit-report.ts';

const headings = ['STATE', 'ID', 'VOLUME', 'SINCE', 'BYTES', 'DETAIL'];

/** The audit for people. */
export function storageAuditText(name: string, audit: StorageAudit): string {
  const { findings, incomplete, counts, looks } = audit;
  const parts = Object.entries(counts).map(([what, count]) => `${what}: ${count}`);
  const trouble = findings.filter(({ isTrouble }) => isTrouble).length;
  const verdict = trouble > 0 ? `findings that need attention: ${trouble}` : 'nothing needs attention';
  return [
    ...(findings.length > 0 ? [...textTable([headings, ...findings.map(cells)]), ''] : []),
    ...incomplete.map((each) => `Not checked: ${printable(each)}.`),
    `${printable(name)}: ${verdict} (${[...parts, looks === 1 ? 'one look' : 'two looks'].join('; ')}).`,
    '',
  ].join('\n');
}

function cells({ state, id, persistentVolume, since, bytes, detail }: StorageFinding): string[] {
  return [state, id, persistentVolume, since, bytes?.toString(), detail].map((text = '') => printable(text) || '-');
}

/** The audit as data, for programs. */
export function storageAuditJson(name: string, audit: StorageAudit, deletions: readonly Deletion[]): string {
  const { looks, counts, findings, incomplete } = audit;
  return `${JSON.stringify({ name, looks, counts, findings, incomplete, deletions }, null, 2)}\n`;
}

/** As of `csi-provisioner audit`: 0 nothing to do, 1 wrong arguments or a refused deletion, 2 trouble, 3 not all was checked. */
export function storageAuditCode({ findings, incomplete }: StorageAudit, deletions: readonly Deletion[]): number {
  if (deletions.some(({ result }) => result === 'refused')) return auditCodes.usage;
  const deleted = new Set(deletions.filter(({ result }) => result === 'deleted').map(({ volumeId }) => volumeId));
  if (findings.some(({ id, isTrouble }) => isTrouble && !deleted.has(id))) return auditCodes.trouble;
  const isUnknown = incomplete.length > 0 || deletions.some(({ result }) => result === 'failed');
  return isUnknown ? auditCodes.unknown : auditCodes.clean;
}
