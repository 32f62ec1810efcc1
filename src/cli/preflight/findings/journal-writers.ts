/** Other accounts may write the records of the intent journal, and so decide what the driver is asked for. */
import { nameList } from '../../../base/name-list.ts';
import { leases } from '../../../kube/election/lease-record.ts';
import { Access, boundAccounts, isSameNamespace } from '../access.ts';
import { lackingRights } from '../lacking-rights.ts';
import { defineFinding } from './preflight-finding.ts';

export const journalWriters = defineFinding({
  name: 'journal-writers',
  check(facts) {
    const { account, manifests, lockNamespace, arguments: read } = facts;
    const isWritten = lackingRights(facts).every(({ needed }) => needed.feature !== 'journal');
    if (read.values['intent-journal'] === 'off' || !isWritten) return [];
    const others = boundAccounts(manifests).filter(
      (other) => other.name !== account.name || !isSameNamespace(other.namespace, account.namespace),
    );
    const right = { group: leases.group, plural: leases.plural, verb: 'update', namespace: lockNamespace };
    const writers = others.filter((other) => new Access(manifests, other).answer(right) === 'granted');
    if (writers.length === 0) return [];
    const names = nameList(
      writers.map(({ namespace, name }) => (namespace === undefined ? name : `${namespace}/${name}`)),
      5,
    );
    return [
      {
        level: 'note',
        message: `Other ServiceAccounts may write Leases where the intent journal is: ${names}. With that they can decide what the driver is asked to create and delete.`,
        cure: 'If you do not trust them, restrict their roles to the names of their own Leases: SECURITY.md.',
      },
    ];
  },
});
