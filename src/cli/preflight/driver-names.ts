/** Which CSI driver a sidecar is for, as far as manifests show it: no flag of the sidecar names its driver. */
import type { Manifest } from './manifest.ts';
import type { SidecarFacts } from './sidecar-facts.ts';
import type { Workload } from './workload.ts';

type Given = Pick<SidecarFacts, 'manifests' | 'sidecars'>;

export function csiDrivers(manifests: readonly Manifest[]): Manifest[] {
  return manifests.filter(({ kind, group }) => kind === 'CSIDriver' && group === 'storage.k8s.io');
}

/**
 * The CSIDriver whose name is in a text of the Pods, such as in an argument of the driver or in the path of its socket on the node. If
 * none is, and there is only one workload with a sidecar: the only CSIDriver. Undefined: it is not known.
 */
export function driverOf(workload: Workload, { manifests, sidecars }: Given): Manifest | undefined {
  const all = csiDrivers(manifests);
  const named = all.filter(({ name }) => namesDriver(workload, name));
  if (named.length > 0) return named.length === 1 ? named[0] : undefined;
  const isAlone = sidecars.every((each) => each.workload === workload);
  return isAlone && all.length === 1 ? all[0] : undefined;
}

/** Whether a name is in a text of the Pods, not as a part of a longer name. */
export function namesDriver({ pod }: Workload, name: string): boolean {
  for (const text of pod.everyText()) {
    for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1)) {
      const around = `${text[at - 1] ?? ''}${text[at + name.length] ?? ''}`;
      if (!/[A-Za-z0-9.-]/.test(around)) return true;
    }
  }
  return false;
}
