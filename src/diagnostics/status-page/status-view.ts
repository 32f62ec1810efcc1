/** A report as one reader asked for it, with what all readers share: the state in one sentence, and what failures have in common. */
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { countText, durationText, errorText, plural } from './html.ts';
import {
  badSteps,
  claimSteps,
  type ReportedClaim,
  type ReportedExplanation,
  type ReportedStep,
  type StatusReport,
  stuckPhase,
} from './status-report.ts';

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

/** What a reader wants to see. */
export interface StatusQuery {
  /** Shown are claims with this text in namespace/name, class, UID or last error; empty: all. */
  readonly search: string;
  /** Undefined: all. */
  readonly step: ReportedStep | undefined;
  /** How many claims are passed over. */
  readonly from: number;
  /** One claim alone, as `namespace/name`; undefined: the list. */
  readonly claim: string | undefined;
}

const maxTextLength = 400;

/** Reads the query of a request target; what makes no sense is left out. */
export function parseStatusQuery(target: string): StatusQuery {
  const query = new URLSearchParams(/\?([^#]*)/s.exec(target)?.[1] ?? '');
  const from = query.get('from') ?? '';
  const claim = query.get('claim') ?? '';
  return {
    search: (query.get('q') ?? '').trim().slice(0, maxTextLength),
    step: claimSteps.find((step) => step === query.get('step')),
    from: /^\d{1,7}$/.test(from) ? Number(from) : 0,
    claim: claim === '' ? undefined : claim.slice(0, maxTextLength),
  };
}

/** The same query with changes, as text from the question mark on. */
export function queryText(query: StatusQuery, changes: Partial<StatusQuery> = {}): string {
  const { search, step, from, claim } = { ...query, ...changes };
  const text = new URLSearchParams({
    ...(search !== '' && { q: search }),
    ...(step !== undefined && { step }),
    ...(from > 0 && { from: String(from) }),
    ...(claim !== undefined && { claim }),
  }).toString();
  return `?${text.replaceAll('%2F', '/')}`;
}

/** What all readers of a report share, computed once for all of them. */
interface ReportDigest {
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

/** The state in one sentence. */
interface Headline {
  /** For the top of the page, and for screen readers when it changes. */
  readonly text: string;
  /** In a few words, for the title of the tab; empty: all is well. */
  readonly mark: string;
  readonly isGood: boolean;
}

/** What stands above all else comes first: while it lasts, the rest may be old. */
export function headline(report: DigestedReport): Headline {
  const { unhealthyReason, driver, work, role, apiServer, atMs } = report;
  const bad = (text: string, mark: string): Headline => ({ text, mark: `! ${mark}`, isGood: false });
  if (!driver.connected) return bad('The driver does not respond', 'driver away');
  if (apiServer.failingSinceMs !== undefined) {
    const duration = durationText((atMs - apiServer.failingSinceMs) / 1000);
    return bad(`The API server has not responded for ${duration}`, 'API server away');
  }
  if (unhealthyReason !== undefined) return bad(`Not ready: ${unhealthyReason}`, 'not ready');
  if (work === undefined) {
    if (role.name !== 'standby') return { text: 'Starting', mark: 'starting', isGood: true };
    const { waitsFor = 'the lease of the leader' } = role;
    return { text: `Standby: this instance waits for ${waitsFor}`, mark: 'standby', isGood: true };
  }
  const problems = problemsOf(report, work);
  if (problems.length > 0)
    return bad(joined(problems.map(({ text }) => text)), joined(problems.map(({ mark }) => mark)));
  return { text: 'Healthy', mark: '', isGood: true };
}

function problemsOf(
  { digest }: DigestedReport,
  work: NonNullable<StatusReport['work']>,
): { text: string; mark: string }[] {
  const { claims, released, isJournalRefused } = work;
  const stuck = stuckCount(work);
  const failing = digest.failing + released.failing;
  const problems: { text: string; mark: string }[] = [];
  const add = (text: string, mark = ''): unknown => problems.push({ text, mark });
  if (digest.failing > 0)
    add(`${countText(digest.failing)} of ${plural(claims.length, 'waiting claim', 'waiting claims')} failing`);
  if (released.failing > 0)
    add(
      `the deletion of ${countText(released.failing)} of ${plural(released.total, 'released volume', 'released volumes')} failing`,
    );
  if (problems[0] !== undefined) problems.splice(0, 1, { ...problems[0], mark: `${countText(failing)} failing` });
  if (stuck > 0) add(`${plural(stuck, 'record', 'records')} of the journal stuck`, `${countText(stuck)} stuck`);
  if (isJournalRefused) add('the intent journal cannot be written', 'no journal');
  return problems.map(({ text, mark }, index) => ({ text: index === 0 ? capitalised(text) : text, mark }));
}

/** Records that only an operator can close. */
export function stuckCount({ phases }: NonNullable<StatusReport['work']>): number {
  return phases.reduce((sum, { phase, count }) => sum + (phase === stuckPhase ? count : 0), 0);
}

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(', ');
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
