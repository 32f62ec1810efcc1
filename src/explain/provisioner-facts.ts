/** Signs of a provisioner in the cluster. No object says who serves a name, so several are read. */
import type { KubeObject } from '../kube/kube-object.ts';
import { type Lease, leases } from '../kube/election/lease-record.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import { type CsiNode, csiDrivers, csiNodes } from './cluster-objects.ts';

export interface ProvisionerFacts {
  /** As claims ask for it: the name of a CSI driver, or of another provisioner. */
  name: string;
  /** CSIDriver of the name. */
  driver: Reading<KubeObject>;
  /** Leases of the election of its leader, in whatever namespace. */
  leases: Reading<Lease[]>;
  /** Read only where there is neither CSIDriver nor Lease. */
  csiNodes?: Reading<CsiNode[]> | undefined;
  /** The names of all CSIDrivers; likewise. */
  drivers?: Reading<string[]> | undefined;
}

/** In-tree plugins are part of kube-controller-manager. */
export function isInTree(provisioner: string): boolean {
  return provisioner.startsWith('kubernetes.io/');
}

/** Up to five requests; none for a plugin that is part of kube-controller-manager. */
export async function readProvisioner(name: string, reader: ClusterReader): Promise<ProvisionerFacts | undefined> {
  if (isInTree(name)) return undefined;
  const [driver, elections] = await Promise.all([reader.exists(csiDrivers, { name }), readLeases(name, reader)]);
  const unseen = driver.kind === 'missing' && found(elections)?.length === 0;
  if (!unseen) return { name, driver, leases: elections };
  const [registered, drivers] = await Promise.all([
    reader.list<CsiNode>(csiNodes),
    reader.pick<KubeObject, string>(csiDrivers, (each) => each.metadata.name),
  ]);
  return { name, driver, leases: elections, csiNodes: registered, drivers };
}

/** The sidecars name the Lease after the driver with dashes for all but letters and digits; other provisioners keep dots. */
async function readLeases(provisioner: string, reader: ClusterReader): Promise<Reading<Lease[]>> {
  const names = new Set([
    provisioner
      .replaceAll(/[^a-zA-Z0-9-]/g, '-')
      .replace(/-$/, '-X')
      .toLowerCase(),
    provisioner.replaceAll('/', '-').toLowerCase(),
  ]);
  let found: Reading<Lease[]> = { kind: 'found', value: [] };
  for (const name of names) {
    found = await reader.list<Lease>(leases, { fieldSelector: `metadata.name=${name}` });
    if (found.kind !== 'found' || found.value.length > 0) return found;
  }
  return found;
}
