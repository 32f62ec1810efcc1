/** Checks of the CSIDriver and the StorageClasses, and of who else provisions for the driver. */
import { nearestName } from '../../base/near-name.ts';
import { shortValue } from '../../base/short-value.ts';
import type { SidecarContainer, Workload } from './find-sidecars.ts';
import type { Manifest } from './manifest.ts';
import type { Check, Found } from './preflight-finding.ts';
import { lockNamespaceOf, readArguments, type SidecarFacts } from './sidecar-facts.ts';

export const driverChecks = {
  /** The CSIDriver asks the scheduler to compare the free storage, and nobody publishes it; or the reverse. */
  capacity(facts) {
    const driver = driverOf(facts.workload, facts);
    if (driver === undefined) return undefined;
    const isCompared = driver.fields.part('spec')?.flag('storageCapacity') ?? false;
    if (isCompared && !isCapacityPublished(facts, driver.name)) {
      return {
        level: 'must',
        message: `CSIDriver ${driver.name} has storageCapacity: true, and no sidecar of it has --enable-capacity: there are no CSIStorageCapacity objects, so the scheduler finds no storage on any node, and Pods with a claim of a WaitForFirstConsumer class are not scheduled.`,
        cure: 'Set --enable-capacity, with its rights, or storageCapacity: false in the CSIDriver.',
      };
    }
    if (isCompared || !facts.arguments.values['enable-capacity']) return undefined;
    return {
      level: 'warning',
      message: `--enable-capacity, and CSIDriver ${driver.name} does not have storageCapacity: true: CSIStorageCapacity objects are published, and the scheduler does not read them.`,
      cure: 'Set storageCapacity: true in the CSIDriver, or leave out --enable-capacity.',
    };
  },

  /** Another workload provisions for the same driver, and the two do not elect a leader together. */
  'same-driver'(facts) {
    const driver = driverOf(facts.workload, facts);
    if (driver === undefined || facts.arguments.values['node-deployment']) return undefined;
    const other = facts.sidecars.find(
      (each) => driverOf(each.workload, facts)?.name === driver.name && worksBeside(each, facts),
    );
    if (other === undefined) return undefined;
    const { kind, name, namespace } = other.workload;
    return {
      level: 'must',
      message: `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name} provisions for CSI driver ${driver.name} as well, and ${facts.lockNamespace.name === undefined ? 'the two do not elect a leader together' : `its leader is not elected in namespace ${facts.lockNamespace.name}`}: both provision the same claims.`,
      cure: 'Give one of the drivers another name, or remove one of the two.',
    };
  },

  /** A StorageClass names a provisioner that nobody is. */
  'class-driver'(facts) {
    const isFirst = facts.sidecars[0]?.container === facts.container; // it is about the classes, not about a sidecar
    const drivers = csiDrivers(facts.manifests).map(({ name }) => name);
    if (!isFirst || drivers.length === 0) return undefined;
    return facts.manifests
      .filter(({ kind, group }) => kind === 'StorageClass' && group === 'storage.k8s.io')
      .flatMap(({ name, fields }) => checkClass(name, fields.text('provisioner') ?? '', drivers, facts) ?? []);
  },
} satisfies Record<string, Check>;

/** By this sidecar or another one of the driver, such as those on its nodes. */
function isCapacityPublished(facts: SidecarFacts, driver: string): boolean {
  return facts.sidecars
    .filter(({ workload }) => workload === facts.workload || driverOf(workload, facts)?.name === driver)
    .some(({ workload, container }) => readArguments(container, workload.namespace).values['enable-capacity']);
}

/** Of another workload, and no standby of this one. */
function worksBeside({ workload, container }: SidecarContainer, facts: SidecarFacts): boolean {
  if (workload === facts.workload || workload.replicas === 0) return false;
  const read = readArguments(container, workload.namespace);
  if (read.values['node-deployment']) return false;
  const areElected = read.values['leader-election'] && facts.arguments.values['leader-election'];
  const [own, other] = [facts.lockNamespace.name, lockNamespaceOf(read, workload, container).name];
  return !areElected || (own !== undefined && other !== undefined && own !== other);
}

function checkClass(
  name: string,
  provisioner: string,
  drivers: readonly string[],
  facts: SidecarFacts,
): Found | undefined {
  if (provisioner.startsWith('kubernetes.io/') || drivers.includes(provisioner)) return undefined;
  if (facts.workloads.some((workload) => namesDriver(workload, provisioner))) return undefined; // a provisioner without a CSIDriver
  const meant = nearestName(provisioner, drivers);
  const said = `StorageClass ${shortValue(name)} names the provisioner ${shortValue(provisioner)}`;
  if (meant === undefined) {
    return {
      level: 'note',
      message: `${said}, of which these manifests have neither a CSIDriver nor a Pod that names it.`,
    };
  }
  return {
    level: 'warning',
    message: `${said}, of which there is nothing here, and CSIDriver ${meant} has nearly the same name: claims of the class get no volume.`,
    cure: `Delete the class and create it again with the provisioner ${meant}: it cannot be edited.`,
  };
}

function csiDrivers(manifests: readonly Manifest[]): Manifest[] {
  return manifests.filter(({ kind, group }) => kind === 'CSIDriver' && group === 'storage.k8s.io');
}

/**
 * Which CSI driver a sidecar is for: no flag of the sidecar names it. The CSIDriver whose name is in a text of the Pods, such as in an
 * argument of the driver or in the path of its socket on the node. If none is, and there is only one workload with a sidecar: the only
 * CSIDriver. Undefined: it is not known.
 */
function driverOf(
  workload: Workload,
  { manifests, sidecars }: Pick<SidecarFacts, 'manifests' | 'sidecars'>,
): Manifest | undefined {
  const all = csiDrivers(manifests);
  const named = all.filter(({ name }) => namesDriver(workload, name));
  if (named.length > 0) return named.length === 1 ? named[0] : undefined;
  const isAlone = sidecars.every((each) => each.workload === workload);
  return isAlone && all.length === 1 ? all[0] : undefined;
}

/** Whether a name is in a text of the Pods, not as a part of a longer name. */
function namesDriver({ pod }: Workload, name: string): boolean {
  for (const text of pod.everyText()) {
    for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1)) {
      const around = `${text[at - 1] ?? ''}${text[at + name.length] ?? ''}`;
      if (!/[A-Za-z0-9.-]/.test(around)) return true;
    }
  }
  return false;
}
