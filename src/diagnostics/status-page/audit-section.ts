/** What the last audit has found; a section of the page. */
import { countText, durationText, escapeHtml, shortened } from './html.ts';

/** One volume or record that the audit found. */
export interface ReportedFinding {
  readonly state: string;
  /** Its id, or its name where that is not known. */
  readonly volume: string;
  /** `namespace/name`; empty: none. */
  readonly claim: string;
  /** Empty: unknown. */
  readonly age: string;
  /** Empty: unknown. */
  readonly size: string;
  readonly detail: string;
  /** To copy; undefined: nothing is to be done. */
  readonly command: string | undefined;
}

/** The audits of `--audit-interval`. */
export interface ReportedAudit {
  /** Undefined: none has been carried out yet. */
  readonly last:
    | {
        readonly endedAtMs: number;
        readonly seconds: number;
        /** By state. */
        readonly counts: Readonly<Record<string, number>>;
        /** The worst first; not all of them. */
        readonly findings: readonly ReportedFinding[];
      }
    | undefined;
  /** Why there is no newer result, or no complete one. */
  readonly problem: string | undefined;
}

const badStates: ReadonlySet<string> = new Set(['lost', 'leaked', 'stuck']);

/** @param audit - undefined: there is none on this instance. */
export function auditSection(audit: ReportedAudit | undefined, atMs: number): string {
  if (audit === undefined) return '<p class="empty">Volumes are audited with --audit-interval, on the leader.</p>';
  const { last, problem } = audit;
  const why = problem === undefined ? '' : `<p class="bad">${escapeHtml(shortened(problem, 300))}`;
  if (last === undefined) return `${why || '<p class="empty">The first audit comes after the interval.'}</p>`;
  const counts = Object.entries(last.counts)
    .map(([state, count]) => `<li><b>${countText(count)}</b> ${escapeHtml(state)}`)
    .join('');
  const ago = durationText((atMs - last.endedAtMs) / 1000);
  const sub = `<p class="sub">Ended ${ago} ago, after ${durationText(last.seconds)}.</p>`;
  return `${why}${sub}<ul class="figures">${counts}</ul>${table(last.findings)}`;
}

function table(findings: readonly ReportedFinding[]): string {
  if (findings.length === 0) return '<p class="empty">Every volume has its PersistentVolume.</p>';
  const rows = findings.map(({ state, volume, claim, age, size, detail, command }) => {
    const name = badStates.has(state) ? `<b class="bad">${escapeHtml(state)}</b>` : escapeHtml(state);
    const copy = command === undefined ? '' : `<p class="e"><code>${escapeHtml(command)}</code>`;
    return `<tr><th scope="row">${name}<td>${escapeHtml(volume)}<td>${escapeHtml(claim)}<td class="n">${escapeHtml(age || 'unknown')}<td class="n">${escapeHtml(size || 'unknown')}<td>${escapeHtml(shortened(detail, 300))}${copy}\n`;
  });
  const head = ['State', 'Volume', 'Claim', 'Age', 'Size', 'Detail'].map((text) => `<th scope="col">${text}`).join('');
  return `<div class="scroll" role="region" aria-label="Audit" tabindex="0"><table><caption>The worst ${findings.length} of the findings</caption>
<thead><tr>${head}</thead><tbody>${rows.join('')}</tbody></table></div>`;
}
