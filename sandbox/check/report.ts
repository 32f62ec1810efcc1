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

export interface Suite {
  readonly name: string;
  readonly results: readonly CheckResult[];
}

/** @param strict - warnings are failures, too. */
export function junitText(suites: readonly Suite[], { strict }: { strict: boolean }): string {
  const body = suites.filter(({ results }) => results.length > 0).map((suite) => suiteText(suite, strict));
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="csi-sandbox check">\n${body.join('')}</testsuites>\n`;
}

function suiteText({ name, results }: Suite, strict: boolean): string {
  const count = (wanted: (result: CheckResult) => boolean): number => results.filter(wanted).length;
  const attributes = {
    name,
    tests: results.length,
    failures: count((result) => failed(result, strict)),
    errors: 0,
    skipped: count(({ status }) => status === 'skip'),
    time: seconds(results.reduce((sum, { durationMs }) => sum + durationMs, 0)),
  };
  return `  <testsuite${attributesText(attributes)}>\n${results.map((result) => caseText(name, result, strict)).join('')}  </testsuite>\n`;
}

function caseText(suite: string, result: CheckResult, strict: boolean): string {
  const { id, title, findings, notes, status, durationMs } = result;
  const texts = [...findings.map(({ level, section, message }) => `${level}: ${message} [${section}]`), ...notes];
  const head = `    <testcase${attributesText({ classname: suite, name: `${id}: ${title}`, time: seconds(durationMs) })}`;
  if (texts.length === 0) return `${head}/>\n`;
  const message = attributesText({ message: findings[0]?.message ?? notes[0] ?? '' });
  const body = escaped(texts.join('\n'));
  if (failed(result, strict)) return `${head}>\n      <failure${message}>${body}</failure>\n    </testcase>\n`;
  if (status === 'skip') return `${head}>\n      <skipped${message}/>\n    </testcase>\n`;
  return `${head}>\n      <system-out>${body}</system-out>\n    </testcase>\n`;
}

function failed({ status }: CheckResult, strict: boolean): boolean {
  return status === 'fail' || (strict && status === 'warn');
}

function attributesText(attributes: Record<string, string | number>): string {
  return Object.entries(attributes)
    .map(([key, value]) => ` ${key}="${escaped(String(value)).replaceAll('\n', '&#10;')}"`)
    .join('');
}

/** What XML 1.0 cannot hold, even escaped. */
const notInXml = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\r': '&#13;' };

function escaped(text: string): string {
  return text.replaceAll(notInXml, '\uFFFD').replaceAll(/[&<>"\r]/g, (character) => entities[character] ?? '');
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}
