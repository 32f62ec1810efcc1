/** Checks of what the ServiceAccount may do, and of who else may do the same. */
import { nameList } from '../../base/name-list.ts';
import { secrets } from '../../csi/secrets/read-secret.ts';
import { leases } from '../../kube/election/lease-record.ts';
import type { Resource } from '../../kube/kube-object.ts';
import { persistentVolumes } from '../../provision/objects.ts';
import { Access, boundAccounts, isSameNamespace, type Namespace } from './access.ts';
import { hasOtherCredentials, lackingRights, rightsStates, rightsText, ruleOf, verbsText } from './lacking-rights.ts';
import type { Check } from './preflight-finding.ts';
import { accountSharers, type SidecarFacts } from './sidecar-facts.ts';

const clusterCommand =
  'kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml | csi-provisioner preflight FILE... -';

export const rightsChecks = {
  /** Rights that the ServiceAccount lacks for what is on here. */
  'missing-right'(facts) {
    const lacking = lackingRights(facts).filter(
      ({ needed, state }) => state.state === 'on' && needed.feature !== 'journal',
    );
    return lacking.map((each) => {
      const { level = 'must', feature, without, go = 'needs it too' } = each.needed;
      const reason = each.state.why === '' ? '' : ` (on, since ${each.state.why})`;
      return {
        level,
        message: `${verbsText(each)} for ${feature}${reason}. Without it ${without}. The Go sidecar ${go}.`,
        cure: 'Add the rule.',
        rules: [ruleOf(each)],
      };
    });
  },

  /** What the ServiceAccount may do is not in the manifests. */
  'rights-unknown'(facts) {
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
  },

  /** The intent journal cannot be written: nothing protects volumes from a crash. */
  'no-journal'(facts) {
    const lacking = lackingRights(facts).filter(
      ({ needed, state }) => needed.feature === 'journal' && state.state === 'on',
    );
    return lacking.map((each) => ({
      level: 'warning',
      message: `${verbsText(each)} for the intent journal. Without it ${each.needed.without}.`,
      cure: 'Add the rule, or set --intent-journal=off to work without the journal and without that report.',
      rules: [ruleOf(each)],
    }));
  },

  /** Rights that are only needed where the driver or users ask for something that no manifest shows. */
  'conditional-rights'(facts) {
    const lacking = lackingRights(facts).filter(({ state }) => state.state === 'depends');
    if (lacking.length === 0) return undefined;
    const byUse = Map.groupBy(lacking, ({ state }) => state.why);
    const cases = [...byUse].map(([use, own]) => `${own.map(rightsText).join(', ')}, if ${use}`);
    return {
      level: 'note',
      message: `Not granted, and needed only in these cases, by the Go sidecar as well: ${cases.join('; ')}.`,
      cure: 'Add the rules for the cases that occur.',
      rules: lacking.map(ruleOf),
      isConditional: true,
    };
  },

  /** Others have the same ServiceAccount, and so may do what the sidecar may. */
  'shared-token'(facts) {
    const { account, workload, container } = facts;
    if (workload.pod.flag('automountServiceAccountToken') === false) return undefined;
    const beside = workload.containers.filter((each) => each !== container).map(({ name }) => name);
    const elsewhere = accountSharers(facts).map(({ kind, name }) => `${kind} ${name}`);
    const sharers = [...beside, ...elsewhere];
    const powers = powersOf(facts);
    if (sharers.length === 0 || powers.length === 0) return undefined;
    return {
      level: 'note',
      message: `${nameList(sharers, 8)} ${sharers.length === 1 ? 'has' : 'have'} the token of ServiceAccount ${account.name} as well, and may ${powers.join(', ')}.`,
      cure: 'If a container does not call the API, it needs no token: deploy/components/token-of-its-own gives it to the sidecar alone.',
    };
  },

  /** Other accounts may write the records of the intent journal, and so decide what the driver is asked for. */
  'journal-writers'(facts) {
    const { account, manifests, lockNamespace, arguments: read } = facts;
    const isWritten = lackingRights(facts).every(({ needed }) => needed.feature !== 'journal');
    if (read.values['intent-journal'] === 'off' || !isWritten) return undefined;
    const others = boundAccounts(manifests).filter(
      (other) => other.name !== account.name || !isSameNamespace(other.namespace, account.namespace),
    );
    const right = { group: leases.group, plural: leases.plural, verb: 'update', namespace: lockNamespace };
    const writers = others.filter((other) => new Access(manifests, other).answer(right) === 'granted');
    if (writers.length === 0) return undefined;
    const names = writers.map(({ namespace, name }) => (namespace === undefined ? name : `${namespace}/${name}`));
    return {
      level: 'note',
      message: `Other ServiceAccounts may write Leases where the intent journal is: ${nameList(names, 5)}. With that they can decide what the driver is asked to create and delete.`,
      cure: 'If you do not trust them, restrict their roles to the names of their own Leases: SECURITY.md.',
    };
  },
} satisfies Record<string, Check>;

/** Those that are on, and for which the manifests do not show a right. */
function undecidedFeatures(facts: SidecarFacts): string[] {
  const undecided = rightsStates(facts).filter(
    ({ state, answers }) => state.state === 'on' && [...(answers?.values() ?? [])].includes('unknown'),
  );
  return [...new Set(undecided.map(({ needed }) => needed.feature))];
}

function powersOf(facts: SidecarFacts): string[] {
  const { access, lockNamespace } = facts;
  const powers: [string, Resource, string, Namespace | undefined][] = [
    ['delete PersistentVolumes', persistentVolumes, 'delete', undefined],
    ['write the records of the intent journal', leases, 'update', lockNamespace],
    ['read all Secrets', secrets, 'get', undefined],
  ];
  return powers
    .filter(([, { group, plural }, verb, namespace]) => access.answer({ group, plural, verb, namespace }) === 'granted')
    .map(([text]) => text);
}
