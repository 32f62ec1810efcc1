/** The report: for each container that is the Go sidecar, its findings and the rights that it needs. */
import { releaseText } from './go-sidecar.ts';
import { definitions } from './findings/findings.ts';
import { type FindingLevel, findingLevels, type FindingName, type MissingRule } from './findings/preflight-finding.ts';
import { rightsStates } from './lacking-rights.ts';
import { findSidecars, workloadsIn } from './find-sidecars.ts';
import { grantManifest } from './grant-manifest.ts';
import type { ReadManifests } from './read-manifests.ts';
import { type SidecarFacts, sidecarFacts } from './sidecar-facts.ts';

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

export interface ReportedFinding {
  finding: FindingName;
  level: FindingLevel;
  message: string;
  /** What to do; empty where nothing is to be done. */
  cure: string;
  /** Rules of roles that would help. */
  rules: ReportedRule[];
}

export interface ReportedRule {
  /** Of a Role; null for a ClusterRole, and where the namespace is not known. */
  namespace: string | null;
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

export interface ReportedRights {
  feature: string;
  /** Whether the feature is on, or depends on driver and users. */
  state: 'on' | 'depends';
  resource: string;
  group: string;
  /** By verb: `granted`, `missing`, `named` (for objects of certain names alone) or `unknown`. */
  verbs: Record<string, string>;
}

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
  const found = definitions.flatMap(({ name: finding, check }) => check(facts).map((each) => ({ finding, ...each })));
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
