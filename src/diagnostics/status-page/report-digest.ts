import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { errorText } from './html.ts';
import { badSteps, type ReportedClaim, type StatusReport } from './status-report.ts';

/** What all readers of a report share, computed once for all of them. */
export interface ReportDigest {
  /** Claims whose last attempt failed, or for which something is missing. */
  readonly failing: number;
  /** What the errors have in common, the most frequent first; not all of them. */
  readonly reasons: readonly { readonly text: string; readonly count: number }[];
}

export type DigestedReport = StatusReport & { readonly digest: ReportDigest };

const maxReasons = 5;
/** Characters of an error that make its reason: what follows rarely tells two reasons apart. */
const reasonLength = 300;

/** Goes through all waiting claims, in slices. */
export async function digested(report: StatusReport): Promise<DigestedReport> {
  const counts = new Map<string, number>();
  let failing = 0;
  for (const claim of report.work?.claims ?? []) {
    if (sliceSpent()) await nextSlice();
    if (isFailing(claim)) failing += 1;
    if (claim.lastError?.kind !== 'failed') continue;
    const reason = commonText(errorText(claim.lastError.message));
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, maxReasons);
  return { ...report, digest: { failing, reasons: most.map(([text, count]) => ({ text, count })) } };
}

function isFailing({ step, lastError }: ReportedClaim): boolean {
  return badSteps.has(step) || (lastError?.kind === 'failed' && step !== 'volume-made');
}

/** An error without the names and numbers that differ from claim to claim. */
function commonText(message: string): string {
  return message
    .slice(0, reasonLength)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '…')
    .replace(/"[^"]+"/g, '"…"')
    .replace(/\b\d+(\.\d+)?\b/g, '…');
}
