/** Roles and bindings with the rules that are missing, beside those of the driver, which its installer would overwrite. */
import type { Account } from './access.ts';
import type { Found, MissingRule } from './findings/preflight-finding.ts';
import { verbRule } from './rule-text.ts';

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
  const metadata = [
    'metadata:',
    `  name: ${JSON.stringify(name)}`,
    ...(namespace === undefined ? [] : [`  namespace: ${namespace}`]),
  ];
  return [
    'apiVersion: rbac.authorization.k8s.io/v1',
    `kind: ${kind}`,
    ...metadata,
    'rules:',
    ...merged(rules).flatMap(ruleLines),
    '---',
    'apiVersion: rbac.authorization.k8s.io/v1',
    `kind: ${kind}Binding`,
    ...metadata,
    'roleRef:',
    '  apiGroup: rbac.authorization.k8s.io',
    `  kind: ${kind}`,
    `  name: ${JSON.stringify(name)}`,
    'subjects:',
    '  - kind: ServiceAccount',
    `    name: ${account.name}`,
    `    namespace: ${accountNamespace}`,
    '',
  ].join('\n');
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

function ruleLines(rule: MissingRule): string[] {
  return [
    `  # ${rule.feature}`,
    ...verbRule(rule)
      .split('\n')
      .map((line) => `  ${line}`),
  ];
}
