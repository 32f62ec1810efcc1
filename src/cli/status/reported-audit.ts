import type { AuditRow, AuditState } from '../../audit/recurring-audit.ts';
import { ageText } from '../../base/age-text.ts';
import { capacityText } from '../../base/quantity.ts';
import type { ReportedAudit, ReportedFinding } from '../../diagnostics/status-page/audit-section.ts';

/** The last audit as the status page shows it. */
export function reportedAudit({ last, problem }: AuditState, atMs: number): ReportedAudit {
  if (last === undefined) return { last, problem };
  const { rows, counts, endedAtMs, seconds } = last;
  return { last: { endedAtMs, seconds, counts, findings: rows.map((row) => reported(row, atMs)) }, problem };
}

function reported({ finding, command }: AuditRow, atMs: number): ReportedFinding {
  const { state, volumeId, volumeName, persistentVolumes = [], claim = '', since, capacityBytes, detail } = finding;
  return {
    state,
    volume: volumeId ?? volumeName ?? persistentVolumes.join(', '),
    claim,
    age: since === undefined ? '' : ageText(atMs - Date.parse(since)),
    size: capacityBytes === undefined ? '' : capacityText(BigInt(capacityBytes)),
    detail,
    command,
  };
}
