/** What the roles in the manifests permit a ServiceAccount (Kubernetes page "Using RBAC Authorization"). */
import type { Fields, Manifest } from './manifest.ts';

/** A ServiceAccount. */
export interface Account {
  /** Undefined where no manifest says it: that of the install. */
  namespace: string | undefined;
  name: string;
}

/** One thing that is done with one resource. */
interface Right {
  group: string;
  plural: string;
  verb: string;
  /** Where; undefined: in all namespaces, or a resource of the cluster. */
  namespace: Namespace | undefined;
}

/** The namespace of objects that are in one. Its name is unknown where no manifest says it. */
export interface Namespace {
  name: string | undefined;
}

/** `named`: only for objects of certain names. `unknown`: a role that is bound is not in the manifests. */
export type Answer = 'granted' | 'named' | 'missing' | 'unknown';

interface Rule {
  groups: string[];
  resources: string[];
  verbs: string[];
  names: string[];
}

/** A role that an account has, and where. */
interface Grant {
  role: string;
  /** Undefined where the role is not in the manifests. */
  rules: Rule[] | undefined;
  /** Undefined: everywhere. */
  namespace: Namespace | undefined;
}

/** The role that may do everything; it is in every cluster and in no manifest. */
const everything: Rule = { groups: ['*'], resources: ['*'], verbs: ['*'], names: [] };
const rbac = 'rbac.authorization.k8s.io';

/** What one account may do. */
export class Access {
  readonly #grants: readonly Grant[];

  /** @throws {ManifestError} for roles and bindings that cannot be read. */
  constructor(manifests: readonly Manifest[], account: Account) {
    const bindings = manifests.filter(({ kind, group }) => group === rbac && kind.endsWith('RoleBinding'));
    this.#grants = bindings
      .filter((binding) => isBound(binding, account))
      .map((binding) => grantOf(binding, manifests));
  }

  /** Some binding names the account. */
  get isBound(): boolean {
    return this.#grants.length > 0;
  }

  /** Names of the roles that are bound, but are not in the manifests. */
  get missingRoles(): string[] {
    return [...new Set(this.#grants.filter(({ rules }) => rules === undefined).map(({ role }) => role))];
  }

  answer(right: Right): Answer {
    const applying = this.#grants.filter(({ namespace }) => reaches(namespace, right.namespace));
    const rules = applying.flatMap((grant) => grant.rules ?? []).filter((rule) => permits(rule, right));
    if (rules.some(({ names }) => names.length === 0)) return 'granted';
    if (applying.some((grant) => grant.rules === undefined)) return 'unknown';
    return rules.length > 0 ? 'named' : 'missing';
  }
}

/** Each ServiceAccount that a binding names. */
export function boundAccounts(manifests: readonly Manifest[]): Account[] {
  const bindings = manifests.filter(({ kind, group }) => group === rbac && kind.endsWith('RoleBinding'));
  const accounts = bindings.flatMap((binding) =>
    binding.fields
      .parts('subjects')
      .filter((subject) => subject.text('kind') === 'ServiceAccount')
      .map((subject) => ({
        name: subject.text('name') ?? '',
        namespace: subject.text('namespace') ?? binding.namespace,
      })),
  );
  return [...new Map(accounts.map((account) => [JSON.stringify(account), account])).values()];
}

/** Names of which one is unknown count as equal: the manifests are of one install. */
export function isSameNamespace(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}

function isBound(binding: Manifest, { name, namespace }: Account): boolean {
  return binding.fields.parts('subjects').some((subject) => {
    const subjectName = subject.text('name') ?? '';
    switch (subject.text('kind')) {
      case 'ServiceAccount':
        return subjectName === name && isSameNamespace(subject.text('namespace') ?? binding.namespace, namespace);
      case 'User':
        return subjectName === `system:serviceaccount:${namespace ?? ''}:${name}`;
      case 'Group':
        return ['system:serviceaccounts', 'system:authenticated', `system:serviceaccounts:${namespace ?? ''}`].includes(
          subjectName,
        );
      default:
        return false;
    }
  });
}

function grantOf(binding: Manifest, manifests: readonly Manifest[]): Grant {
  const reference = binding.fields.part('roleRef');
  const kind = reference?.text('kind') ?? '';
  const role = reference?.text('name') ?? '';
  const namespace = binding.kind === 'ClusterRoleBinding' ? undefined : { name: binding.namespace };
  const found = manifests.find(
    (each) =>
      each.group === rbac &&
      each.kind === kind &&
      each.name === role &&
      (kind === 'ClusterRole' || isSameNamespace(each.namespace, binding.namespace)),
  );
  if (found === undefined && kind === 'ClusterRole' && role === 'cluster-admin') {
    return { role, namespace, rules: [everything] };
  }
  return { role, namespace, rules: found && rulesOf(found, manifests) };
}

/** Undefined for an aggregated role of which no part is in the manifests. */
function rulesOf(role: Manifest, manifests: readonly Manifest[]): Rule[] | undefined {
  const aggregation = role.fields.part('aggregationRule');
  if (aggregation === undefined) return role.fields.parts('rules').map(ruleOf);
  const selectors = aggregation.parts('clusterRoleSelectors');
  const parts = manifests.filter(
    (each) =>
      each !== role &&
      each.group === rbac &&
      each.kind === 'ClusterRole' &&
      selectors.some((selector) => isSelected(each, selector)),
  );
  return parts.length === 0 ? undefined : parts.flatMap((part) => part.fields.parts('rules')).map(ruleOf);
}

function ruleOf(fields: Fields): Rule {
  return {
    groups: fields.texts('apiGroups'),
    resources: fields.texts('resources'),
    verbs: fields.texts('verbs'),
    names: fields.texts('resourceNames'),
  };
}

/** Whether a label selector selects a role (Kubernetes page "Labels and Selectors"). */
function isSelected({ fields }: Manifest, selector: Fields): boolean {
  const labels = fields.part('metadata')?.textMap('labels') ?? new Map<string, string>();
  const isEqual = [...selector.textMap('matchLabels')].every(([key, value]) => labels.get(key) === value);
  return isEqual && selector.parts('matchExpressions').every((expression) => fits(labels, expression));
}

function fits(labels: ReadonlyMap<string, string>, expression: Fields): boolean {
  const value = labels.get(expression.text('key') ?? '');
  const values = expression.texts('values');
  switch (expression.text('operator')) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}

function reaches(granted: Namespace | undefined, wanted: Namespace | undefined): boolean {
  if (granted === undefined) return true;
  return wanted !== undefined && isSameNamespace(granted.name, wanted.name);
}

function permits({ groups, resources, verbs }: Rule, { group, plural, verb }: Right): boolean {
  return isIn(groups, group) && isIn(resources, plural) && isIn(verbs, verb);
}

function isIn(list: readonly string[], value: string): boolean {
  return list.includes('*') || list.includes(value);
}
