/** The report for people. */
import { printable } from '../../base/printable.ts';
import { wrappedText } from '../../base/wrapped-text.ts';
import type { FindingLevel } from './findings/preflight-finding.ts';
import type { PreflightReport, ReportedFinding, ReportedRule, SidecarReport } from './preflight-report.ts';

const marks: Readonly<Record<FindingLevel, string>> = { must: '✗', warning: '!', note: '·' };
/** Of a terminal: red, yellow, none. */
const colours: Readonly<Record<FindingLevel, number>> = { must: 31, warning: 33, note: 0 };

export interface PreflightTextOptions {
  colour: boolean;
  /** Max characters in a line. Default 100. */
  columns?: number | undefined;
}

/** The text ends in a line break. */
export function preflightText(report: PreflightReport, options: PreflightTextOptions): string {
  const notes = report.notes.map((note) => `${singleLine(note)}.`);
  const parts = report.sidecars.map((sidecar) => sidecarText(sidecar, options));
  const isClean = report.sidecars.length > 0 && report.sidecars.every(({ findings }) => findings.every(isNote));
  return [
    ...parts,
    ...(notes.length === 0 ? [] : [`${notes.join('\n')}\n`]),
    ...(isClean ? ['The image may be changed.\n'] : []),
  ].join('\n');
}

function isNote({ level }: ReportedFinding): boolean {
  return level === 'note';
}

function sidecarText(sidecar: SidecarReport, options: PreflightTextOptions): string {
  const { workload, container, release, findings, grant } = sidecar;
  const { kind, namespace, name, file, document } = workload;
  const where = namespace === null ? name : `${namespace}/${name}`;
  const version = release === null ? '' : ` (Go sidecar ${release})`;
  return [
    singleLine(`${kind} ${where}, container ${container}${version}`),
    singleLine(`  in ${file}, document ${document}: ${summary(findings)}`),
    ...findings.flatMap((finding) => ['', ...findingLines(finding, options)]),
    '',
    ...(grant === '' ? [] : ['These objects grant the missing rights (kubectl apply -f):', '', grant]),
  ].join('\n');
}

/** Such as `1 must, 2 warnings`. */
function summary(findings: readonly ReportedFinding[]): string {
  const count = (level: FindingLevel): number => findings.filter((each) => each.level === level).length;
  const counted = (number: number, one: string, many: string): string[] =>
    number === 0 ? [] : [`${number} ${number === 1 ? one : many}`];
  const parts = [
    ...counted(count('must'), 'thing to do first', 'things to do first'),
    ...counted(count('warning'), 'warning', 'warnings'),
    ...counted(count('note'), 'note', 'notes'),
  ];
  return parts.length === 0 ? 'nothing to do' : parts.join(', ');
}

function findingLines(finding: ReportedFinding, { colour, columns = 100 }: PreflightTextOptions): string[] {
  const { level, message, cure } = finding;
  const mark = colour && level !== 'note' ? `\u001b[${colours[level]}m${marks[level]}\u001b[0m` : marks[level];
  const [first = '', ...others] = wrappedText(`${finding.finding}: ${singleLine(message)}`, columns - 4);
  return [
    `  ${mark} ${first}`,
    ...others.map((line) => `    ${line}`),
    ...(cure === '' ? [] : wrappedText(`→ ${singleLine(cure)}`, columns - 4).map((line) => `    ${line}`)),
    ...(finding.finding === 'conditional-rights' ? finding.rules.map((rule) => `      ${shortRule(rule)}`) : []),
  ];
}

/** A rule of a role in one line, as JSON, which is YAML as well. */
function shortRule({ apiGroups, resources, verbs }: ReportedRule): string {
  return `- ${JSON.stringify({ apiGroups, resources, verbs })}`;
}

/** Text from files must neither break lines, nor move the cursor of a terminal. */
function singleLine(text: string): string {
  return printable(text.replaceAll(/\s*\n\s*/g, ' ').trimEnd());
}
