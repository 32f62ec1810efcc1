import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { errorText } from './html.ts';
import type { DigestedReport } from './report-digest.ts';
import type { StatusQuery } from './status-query.ts';
import type { ReportedClaim } from './status-report.ts';

/** A report as one reader asked for it. */
export interface StatusView {
  readonly report: DigestedReport;
  readonly query: StatusQuery;
  /** The claims that the search found, of all steps. */
  readonly found: readonly ReportedClaim[];
}

/** Searches the claims, in slices. */
export async function statusView(report: DigestedReport, query: StatusQuery): Promise<StatusView> {
  const claims = report.work?.claims ?? [];
  if (query.search === '' || query.claim !== undefined) return { report, query, found: claims };
  const search = query.search.toLowerCase();
  const found: ReportedClaim[] = [];
  for (const claim of claims) {
    if (sliceSpent()) await nextSlice();
    if (isFound(claim, search)) found.push(claim);
  }
  return { report, query, found };
}

function isFound({ namespace, name, className, uid, lastError }: ReportedClaim, search: string): boolean {
  const error = lastError?.message ?? '';
  const texts = [`${namespace}/${name}`, className, uid, error, errorText(error)]; // as it is, and as it is shown
  return texts.some((text) => text.toLowerCase().includes(search));
}
