/** The report, as JSON and as text: for each container that is the Go sidecar, its findings and the rights that it needs. */
import { printable } from '../../base/printable.ts';
import { wrappedText } from '../../base/wrapped-text.ts';
import { findSidecars, releaseText, workloadsIn } from './find-sidecars.ts';
import { driverChecks } from './driver-checks.ts';
import { flagChecks } from './flag-checks.ts';
import { grantManifest, rightsStates } from './lacking-rights.ts';
import { limitChecks } from './limit-checks.ts';
import {
  type Check,
  type FindingLevel,
  findingLevels,
  type FindingName,
  findingNames,
  type MissingRule,
} from './preflight-finding.ts';
import type { ReadManifests } from './read-manifests.ts';
import { replicaChecks } from './replica-checks.ts';
import { rightsChecks } from './rights-checks.ts';
import { type SidecarFacts, sidecarFacts } from './sidecar-facts.ts';
import { startChecks } from './start-checks.ts';

/** The output of `preflight -o json`. */
export interface PreflightReport {
  /** `must`: something is to be done first. `warning` and `note`: the worst of the findings. `ready`: there are none. */
  verdict: FindingLevel | 'ready';
  sidecars: SidecarReport[];
  /** What of the files was not read, and why. */
  notes: string[];
}

export interface SidecarReport {
  workload: { kind: string; namespace: string | null; name: string; file: string; document: number };
  container: string;
  image: string;
  /** Of the Go sidecar, such as `v5.2`; null where the image does not say it. */
  release: string | null;
  serviceAccount: string;
  findings: ReportedFinding[];
  rights: ReportedRights[];
  /** Roles and bindings with the missing rules, for kubectl apply; empty where none is missing. */
  grant: string;
}

interface ReportedFinding {
  finding: FindingName;
  level: FindingLevel;
  message: string;
  /** What to do; empty where nothing is to be done. */
  cure: string;
  /** Rules of roles that would help. */
  rules: ReportedRule[];
}

interface ReportedRule {
  /** Of a Role; null for a ClusterRole, and where the namespace is not known. */
  namespace: string | null;
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

interface ReportedRights {
  feature: string;
  /** Whether the feature is on, or depends on driver and users. */
  state: 'on' | 'depends';
  resource: string;
  group: string;
  /** By verb: `granted`, `missing`, `named` (for objects of certain names alone) or `unknown`. */
  verbs: Record<string, string>;
}

const checks: Readonly<Record<FindingName, Check>> = {
  ...startChecks,
  ...rightsChecks,
  ...limitChecks,
  ...replicaChecks,
  ...driverChecks,
  ...flagChecks,
};

/** @param options.namespace - of objects that name none. @throws {ManifestError} */
export function preflightReport(
  { manifests, notes }: ReadManifests,
  { namespace, container }: { namespace: string | undefined; container: string | undefined },
): PreflightReport {
  const workloads = workloadsIn(manifests, namespace);
  const found = findSidecars(manifests, workloads, container);
  const all = { manifests, workloads, sidecars: found };
  const sidecars = found.map((each) => sidecarReport(sidecarFacts(each, all)));
  const levels = sidecars.flatMap(({ findings }) => findings.map(({ level }) => level));
  return { verdict: findingLevels.find((level) => levels.includes(level)) ?? 'ready', sidecars, notes };
}

function sidecarReport(facts: SidecarFacts): SidecarReport {
  const { workload, container, account, release } = facts;
  const { kind, name, namespace, manifest } = workload;
  const found = findingNames.flatMap((finding) => {
    return [checks[finding](facts) ?? []].flat().map((each) => ({ finding, ...each }));
  });
  const findings = findingLevels.flatMap((level) => found.filter((each) => each.level === level));
  return {
    workload: { kind, namespace: namespace ?? null, name, ...manifest.place },
    container: container.name,
    image: container.image,
    release: release === undefined ? null : releaseText(release),
    serviceAccount: account.name,
    findings: findings.map(({ finding, level, message, cure = '', rules = [] }) => {
      return { finding, level, message, cure, rules: rules.map(reportedRule) };
    }),
    rights: reportedRights(facts),
    grant: grantManifest(account, findings),
  };
}

function reportedRule({ namespace, apiGroup, resource, verbs }: MissingRule): ReportedRule {
  return { namespace: namespace ?? null, apiGroups: [apiGroup], resources: [resource], verbs: [...verbs] };
}

function reportedRights(facts: SidecarFacts): ReportedRights[] {
  return rightsStates(facts).map(({ needed, state, answers }) => ({
    feature: needed.feature,
    state: state.state === 'on' ? 'on' : 'depends',
    resource: needed.resource.plural,
    group: needed.resource.group,
    verbs: Object.fromEntries(needed.verbs.map((verb) => [verb, answers?.get(verb) ?? 'unknown'])),
  }));
}

const marks: Readonly<Record<FindingLevel, string>> = { must: '✗', warning: '!', note: '·' };
/** Of a terminal: red, yellow, none. */
const colours: Readonly<Record<FindingLevel, number>> = { must: 31, warning: 33, note: 0 };

interface PreflightTextOptions {
  colour: boolean;
  /** Max characters in a line. Default 100. */
  columns?: number | undefined;
}

/** The report for people. The text ends in a line break. */
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
