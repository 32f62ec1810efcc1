import { claimSteps, type ReportedStep } from './status-report.ts';

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
