/** Roles and bindings with the rules that are missing, beside those of the driver, which its installer would overwrite. */
import { dump } from 'js-yaml';
import type { Account } from './access.ts';
import type { Found, MissingRule } from './findings/preflight-finding.ts';

/** For kubectl apply; empty where no rule is missing but those that are needed only where something is used. */
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
