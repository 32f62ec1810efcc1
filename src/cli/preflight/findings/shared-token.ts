/** Others have the same ServiceAccount, and so may do what the sidecar may. */
import { nameList } from '../../../base/name-list.ts';
import { secrets } from '../../../csi/secrets/read-secret.ts';
import { leases } from '../../../kube/election/lease-record.ts';
import type { Resource } from '../../../kube/kube-object.ts';
import { persistentVolumes } from '../../../provision/objects.ts';
import type { Namespace } from '../access.ts';
import { accountSharers, type SidecarFacts } from '../sidecar-facts.ts';
import { defineFinding } from './preflight-finding.ts';

export const sharedToken = defineFinding({
  name: 'shared-token',
  check(facts) {
    const { account, workload, container } = facts;
    if (workload.pod.flag('automountServiceAccountToken') === false) return [];
    const beside = workload.containers.filter((each) => each !== container).map(({ name }) => name);
    const elsewhere = accountSharers(facts).map(({ kind, name }) => `${kind} ${name}`);
    const sharers = [...beside, ...elsewhere];
    const powers = powersOf(facts);
    if (sharers.length === 0 || powers.length === 0) return [];
    return [
      {
        level: 'note',
        message: `${nameList(sharers, 8)} ${sharers.length === 1 ? 'has' : 'have'} the token of ServiceAccount ${account.name} as well, and may ${powers.join(', ')}.`,
        cure: 'If a container does not call the API, it needs no token: deploy/components/token-of-its-own gives it to the sidecar alone.',
      },
    ];
  },
});

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
