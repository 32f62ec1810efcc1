import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { errorText } from './html.ts';
import type { DigestedReport } from './report-digest.ts';
import type { StatusQuery } from './status-query.ts';
import type { ReportedClaim, ReportedExplanation } from './status-report.ts';

/** A report as one reader asked for it. */
export interface StatusView {
  readonly report: DigestedReport;
  readonly query: StatusQuery;
  /** The claims that the search found, of all steps. */
  readonly found: readonly ReportedClaim[];
  /** Of the claim that was asked for; undefined for none, or for one that does not wait. */
  readonly explanation: ReportedExplanation | undefined;
}

/** Explains a claim, by `NAMESPACE/NAME`. */
export type ExplainClaim = (claim: string) => ReportedExplanation | undefined;

/** Searches the claims, in slices. */
export async function statusView(
  report: DigestedReport,
  query: StatusQuery,
  explain: ExplainClaim,
): Promise<StatusView> {
  const claims = report.work?.claims ?? [];
  const explanation = query.claim === undefined ? undefined : explain(query.claim);
  if (query.search === '') return { report, query, found: claims, explanation };
  const search = query.search.toLowerCase();
  const found: ReportedClaim[] = [];
  for (const claim of claims) {
    if (sliceSpent()) await nextSlice();
    if (isFound(claim, search)) found.push(claim);
  }
  return { report, query, found, explanation };
}

function isFound({ namespace, name, className, uid, lastError }: ReportedClaim, search: string): boolean {
  const error = lastError?.message ?? '';
  const texts = [`${namespace}/${name}`, className, uid, error, errorText(error)]; // as it is, and as it is shown
  return texts.some((text) => text.toLowerCase().includes(search));
}
