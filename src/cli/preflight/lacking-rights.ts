/** Which of the needed rights an account lacks, and the objects that would grant them. */
import { dump } from 'js-yaml';
import type { Account, Answer } from './access.ts';
import type { FeatureState } from './feature-state.ts';
import { namespaceOf, type NeededRights, neededRights } from './needed-rights.ts';
import type { Found, MissingRule } from './preflight-finding.ts';
import type { SidecarFacts } from './sidecar-facts.ts';

/** The state of the rights on one resource for one feature. */
interface RightsState {
  needed: NeededRights;
  state: FeatureState;
  /** Undefined where the manifests do not say what the account may do. */
  answers: ReadonlyMap<string, Answer> | undefined;
  facts: SidecarFacts;
}

interface LackingRights extends RightsState {
  verbs: readonly string[];
  /** They are granted for objects of certain names alone. */
  isNamed: boolean;
}

/** Of each feature that is not off. */
export function rightsStates(facts: SidecarFacts): RightsState[] {
  const isKnown = !hasOtherCredentials(facts) && facts.access.isBound;
  return neededRights.flatMap((needed) => {
    const state = needed.state?.(facts) ?? { state: 'on', why: '' };
    if (state.state === 'off') return [];
    const answers = new Map(needed.verbs.map((verb) => [verb, answerOf(facts, needed, verb)]));
    return [{ needed, state, facts, answers: isKnown ? answers : undefined }];
  });
}

/** The process uses another account than that of its Pod. */
export function hasOtherCredentials({ arguments: { config } }: SidecarFacts): boolean {
  const { kubeconfigFiles = [], masterUrl = '' } = config?.kubernetes ?? {};
  return kubeconfigFiles.length > 0 || masterUrl !== '';
}

/** Empty where nothing is known. */
export function lackingRights(facts: SidecarFacts): LackingRights[] {
  return rightsStates(facts).flatMap((each) => {
    const { needed, answers } = each;
    const lacking = needed.verbs.filter((verb) => ['missing', 'named'].includes(answers?.get(verb) ?? ''));
    if (lacking.length === 0 || isItsLease(needed, lacking, answers)) return [];
    return [{ ...each, verbs: lacking, isNamed: lacking.some((verb) => answers?.get(verb) === 'named') }];
  });
}

/** The Lease of the leader election has one name, which a role may well give. */
function isItsLease(
  { feature }: NeededRights,
  verbs: readonly string[],
  answers: ReadonlyMap<string, Answer> | undefined,
): boolean {
  return feature === 'leader-election' && verbs.every((verb) => answers?.get(verb) === 'named');
}

function answerOf(facts: SidecarFacts, needed: NeededRights, verb: string): Answer {
  const { group, plural } = needed.resource;
  return facts.access.answer({ group, plural, verb, namespace: namespaceOf(needed, facts) });
}

/** Such as `get and update on leases.coordination.k8s.io in namespace csi are missing`. */
export function verbsText(lacking: LackingRights): string {
  const are = lacking.verbs.length === 1 ? 'is' : 'are';
  return `${rightsText(lacking)} ${are} ${lacking.isNamed ? 'granted for certain names alone (resourceNames)' : 'missing'}`;
}

/** Such as `get and update on leases.coordination.k8s.io in namespace csi`. */
export function rightsText({ needed, verbs, facts }: LackingRights): string {
  const { group, plural } = needed.resource;
  const last = verbs.at(-1) ?? '';
  const listed = verbs.length > 1 ? `${verbs.slice(0, -1).join(', ')} and ${last}` : last;
  const where = needed.where === 'anywhere' ? '' : whereText(namespaceOf(needed, facts));
  return `${listed} on ${group === '' ? plural : `${plural}.${group}`}${where}`;
}

function whereText(namespace: { name: string | undefined } | undefined): string {
  if (namespace === undefined) return '';
  return namespace.name === undefined ? " in the Pod's namespace" : ` in namespace ${namespace.name}`;
}

export function ruleOf({ needed, verbs, facts }: LackingRights): MissingRule {
  const namespace = needed.where === 'anywhere' ? undefined : namespaceOf(needed, facts);
  return {
    namespace: namespace?.name,
    isNamespaced: namespace !== undefined,
    apiGroup: needed.resource.group,
    resource: needed.resource.plural,
    verbs,
    feature: needed.feature,
  };
}

/**
 * Roles and bindings with the rules that are missing, for kubectl apply: beside those of the driver, which its installer would overwrite.
 * Empty where no rule is missing but those that are needed only where something is used.
 */
export function grantManifest(account: Account, findings: readonly Pick<Found, 'rules' | 'isConditional'>[]): string {
  const rules = findings.flatMap(({ rules: own = [], isConditional = false }) => (isConditional ? [] : own));
  const roles = Map.groupBy(rules, ({ isNamespaced, namespace }) => JSON.stringify([isNamespaced, namespace ?? '']));
  return [...roles.values()].map((own) => role(account, own)).join('---\n');
}

function role(account: Account, rules: readonly MissingRule[]): string {
  const [first] = rules;
  const accountNamespace = account.namespace ?? 'NAMESPACE';
  const kind = first?.isNamespaced === true ? 'Role' : 'ClusterRole';
  const namespace = first?.isNamespaced === true ? (first.namespace ?? accountNamespace) : undefined;
  const name =
    kind === 'Role' ? `${account.name}-csi-provisioner` : `${account.name}-csi-provisioner:${accountNamespace}`;
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  const group = 'rbac.authorization.k8s.io';
  const binding = {
    apiVersion: `${group}/v1`,
    kind: `${kind}Binding`,
    metadata,
    roleRef: { apiGroup: group, kind, name },
    subjects: [{ kind: 'ServiceAccount', name: account.name, namespace: accountNamespace }],
  };
  const parts = [
    dump({ apiVersion: binding.apiVersion, kind, metadata }),
    'rules:\n',
    ...merged(rules).map(ruleText),
    '---\n',
    dump(binding),
  ];
  return parts.join('');
}

/** One rule for each resource, for all features that need it. */
function merged(rules: readonly MissingRule[]): MissingRule[] {
  const byResource = Map.groupBy(rules, (rule) => JSON.stringify([rule.apiGroup, rule.resource]));
  return [...byResource.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const all = [first, ...others];
    return {
      ...first,
      verbs: [...new Set(all.flatMap(({ verbs }) => verbs))],
      feature: [...new Set(all.map(({ feature }) => feature))].join(', '),
    };
  });
}

/** An item of the list below `rules`, and what it is for. */
function ruleText({ apiGroup, resource, verbs, feature }: MissingRule): string {
  const item = dump([{ apiGroups: [apiGroup], resources: [resource], verbs }], { flowLevel: 2, lineWidth: -1 });
  return `  # ${feature}\n${item.replaceAll(/^(?=.)/gm, '  ')}`;
}
