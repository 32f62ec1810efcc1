import { countText, durationText, plural } from './html.ts';
import type { DigestedReport } from './report-digest.ts';
import { stuckPhase, type StatusReport } from './status-report.ts';

/** The state in one sentence. */
export interface Headline {
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
