/** A StorageClass names a provisioner that nobody is. */
import { shortValue } from '../../../base/short-value.ts';
import { nearestName } from '../../../base/near-name.ts';
import { csiDrivers, namesDriver } from '../driver-names.ts';
import type { SidecarFacts } from '../sidecar-facts.ts';
import { defineFinding, type Found } from './preflight-finding.ts';

export const classDriver = defineFinding({
  name: 'class-driver',
  check(facts) {
    const isFirst = facts.sidecars[0]?.container === facts.container; // it is about the classes, not about a sidecar
    const drivers = csiDrivers(facts.manifests).map(({ name }) => name);
    if (!isFirst || drivers.length === 0) return [];
    return facts.manifests
      .filter(({ kind, group }) => kind === 'StorageClass' && group === 'storage.k8s.io')
      .flatMap(({ name, fields }) => ofClass(name, fields.text('provisioner') ?? '', drivers, facts));
  },
});

function ofClass(name: string, provisioner: string, drivers: readonly string[], facts: SidecarFacts): Found[] {
  if (provisioner.startsWith('kubernetes.io/') || drivers.includes(provisioner)) return [];
  if (facts.workloads.some((workload) => namesDriver(workload, provisioner))) return []; // a provisioner without a CSIDriver
  const meant = nearestName(provisioner, drivers);
  const said = `StorageClass ${shortValue(name)} names the provisioner ${shortValue(provisioner)}`;
  if (meant === undefined) {
    return [
      { level: 'note', message: `${said}, of which these manifests have neither a CSIDriver nor a Pod that names it.` },
    ];
  }
  return [
    {
      level: 'warning',
      message: `${said}, of which there is nothing here, and CSIDriver ${meant} has nearly the same name: claims of the class get no volume.`,
      cure: `Delete the class and create it again with the provisioner ${meant}: it cannot be edited.`,
    },
  ];
}
