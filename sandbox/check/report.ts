/** The results in words. */
import { printable } from '../../src/base/printable.ts';
import type { CheckResult, Status } from './check.ts';

/** A line for the check, and one for each further finding. */
export function resultText({ status, id, title, section, part, findings, notes }: CheckResult): string {
  const details = [
    ...findings.map(
      (finding) => `${finding.level === 'warn' ? 'warning: ' : ''}${finding.message} [${finding.section}]`,
    ),
    ...notes.filter((note) => note !== ''),
  ];
  const head = `${status.padEnd(4)}  ${id}`;
  if (status === 'pass' && details.length === 0) return `${head.padEnd(30)} ${title} [${section}]\n`;
  if (status === 'skip') {
    const what = part === 'sanity' ? [title, ...details] : details;
    return `${head.padEnd(30)} ${printable(what.join(': '))}\n`;
  }
  return [`${head.padEnd(30)} ${printable(title)}`, ...details.map((text) => `        ${printable(text)}`), ''].join(
    '\n',
  );
}

/** One line that counts them. */
export function summaryText(results: readonly CheckResult[]): string {
  const count = (status: Status): number => results.filter((result) => result.status === status).length;
  const failed = [...new Set(results.filter(({ status }) => status === 'fail').map(({ id }) => id))];
  const counts = `${count('pass')} passed, ${count('fail')} failed, ${count('warn')} with warnings, ${count('skip')} skipped`;
  return failed.length === 0 ? `${counts}\n` : `${counts}\nfailed: ${failed.join(' ')}\n`;
}

/** 1 when a check has failed, or with `strict` one has warned; else 0. */
export function exitCode(results: readonly CheckResult[], { strict }: { strict: boolean }): number {
  return results.some(({ status }) => status === 'fail' || (strict && status === 'warn')) ? 1 : 0;
}
