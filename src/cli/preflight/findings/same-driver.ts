/** Another workload provisions for the same driver, and the two do not elect a leader together. */
import { driverOf } from '../driver-names.ts';
import { readArguments } from '../read-arguments.ts';
import { lockNamespaceOf, type SidecarContainer, type SidecarFacts } from '../sidecar-facts.ts';
import type { Workload } from '../workload.ts';
import { defineFinding } from './preflight-finding.ts';

export const sameDriver = defineFinding({
  name: 'same-driver',
  check(facts) {
    const driver = driverOf(facts.workload, facts);
    if (driver === undefined || facts.arguments.values['node-deployment']) return [];
    const others = facts.sidecars.filter(
      (each) => driverOf(each.workload, facts)?.name === driver.name && worksBeside(each, facts),
    );
    return others.slice(0, 1).map(({ workload }) => ({
      level: 'must',
      message: `${named(workload)} provisions for CSI driver ${driver.name} as well, and ${facts.lockNamespace.name === undefined ? 'the two do not elect a leader together' : `its leader is not elected in namespace ${facts.lockNamespace.name}`}: both provision the same claims.`,
      cure: 'Give one of the drivers another name, or remove one of the two.',
    }));
  },
});

/** Of another workload, and no standby of this one. */
function worksBeside({ workload, container }: SidecarContainer, facts: SidecarFacts): boolean {
  if (workload === facts.workload || workload.replicas === 0) return false;
  const read = readArguments(container, workload.namespace);
  if (read.values['node-deployment']) return false;
  const areElected = read.values['leader-election'] && facts.arguments.values['leader-election'];
  const [own, other] = [facts.lockNamespace.name, lockNamespaceOf(read, workload, container).name];
  return !areElected || (own !== undefined && other !== undefined && own !== other);
}

function named({ kind, name, namespace }: Workload): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}
