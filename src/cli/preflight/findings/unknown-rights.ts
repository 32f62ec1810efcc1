/** What the ServiceAccount may do is not in the manifests. */
import { nameList } from '../../../base/name-list.ts';
import { hasOtherCredentials, rightsStates } from '../lacking-rights.ts';
import type { SidecarFacts } from '../sidecar-facts.ts';
import { defineFinding, type Found } from './preflight-finding.ts';

export const unknownRights = defineFinding({
  name: 'rights-unknown',
  check(facts) {
    const found = unknown(facts);
    return found === undefined ? [] : [found];
  },
});

function unknown(facts: SidecarFacts): Found | undefined {
  const { account, access } = facts;
  if (hasOtherCredentials(facts)) {
    return {
      level: 'warning',
      message:
        'It uses a kubeconfig or --master, so not the ServiceAccount of its Pod. Its permissions there are not known, and no right was checked.',
      cure: 'Compare the permissions of that account with docs/deploy.md, "Permissions".',
    };
  }
  if (!access.isBound) {
    return {
      level: 'warning',
      message: `No RoleBinding or ClusterRoleBinding in the manifests names the ServiceAccount ${account.name}. Its permissions are not known, and no right was checked.`,
      cure: `Pass the files with its roles and bindings as well, or those of the cluster: ${clusterCommand}.`,
    };
  }
  const undecided = undecidedFeatures(facts);
  if (undecided.length === 0) return undefined;
  return {
    level: 'warning',
    message: `The ServiceAccount ${account.name} is bound to roles that are not in the manifests: ${nameList(access.missingRoles, 5)}. Whether they grant what is needed for ${undecided.join(', ')} is not known.`,
    cure: `Pass the files with them as well, or the roles of the cluster: ${clusterCommand}.`,
  };
}

/** Those that are on, and for which the manifests do not show a right. */
function undecidedFeatures(facts: SidecarFacts): string[] {
  const undecided = rightsStates(facts).filter(
    ({ state, answers }) => state.state === 'on' && [...(answers?.values() ?? [])].includes('unknown'),
  );
  return [...new Set(undecided.map(({ needed }) => needed.feature))];
}

const clusterCommand =
  'kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml | csi-provisioner preflight FILE... -';
