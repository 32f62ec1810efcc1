/** What is known of one container that is the Go sidecar: what the findings are made from. */
import { isLabelName, isSubdomainName } from '../../kube/object-name.ts';
import { Access, type Account, isSameNamespace, type Namespace } from './access.ts';
import { goRelease, type GoRelease } from './go-sidecar.ts';
import { type Manifest, notName } from './manifest.ts';
import { readArguments, type ReadArguments, unknownName } from './read-arguments.ts';
import type { Container, Workload } from './workload.ts';

export interface SidecarFacts {
  workload: Workload;
  container: Container;
  arguments: ReadArguments;
  account: Account;
  access: Access;
  /** Where the Lease of the leader election and the journal are. */
  lockNamespace: Namespace;
  /** Undefined where its image does not say it. */
  release: GoRelease | undefined;
  /** All that was given. */
  manifests: readonly Manifest[];
  /** All of them, with this one. */
  workloads: readonly Workload[];
  /** All containers that are the Go sidecar, with this one. */
  sidecars: readonly SidecarContainer[];
}

/** A container that is the Go sidecar. */
export interface SidecarContainer {
  workload: Workload;
  container: Container;
}

/** @throws {ManifestError} */
export function sidecarFacts(
  { workload, container }: SidecarContainer,
  all: Pick<SidecarFacts, 'manifests' | 'workloads' | 'sidecars'>,
): SidecarFacts {
  checkNames(workload);
  const account = accountOf(workload);
  const read = readArguments(container, workload.namespace);
  return {
    workload,
    container,
    arguments: read,
    account,
    access: new Access(all.manifests, account),
    lockNamespace: lockNamespaceOf(read, workload, container),
    release: goRelease(container.image),
    ...all,
  };
}

/** Those that are printed to be applied. @throws {ManifestError} */
function checkNames({ manifest, pod }: Workload): void {
  manifest.fields.part('metadata')?.checkName('namespace', isLabelName);
  for (const field of ['serviceAccountName', 'serviceAccount']) pod.checkName(field, isSubdomainName);
}

export function accountOf({ pod, namespace }: Workload): Account {
  return { namespace, name: pod.text('serviceAccountName') || pod.text('serviceAccount') || 'default' };
}

/** Other workloads whose Pods have the same ServiceAccount. */
export function accountSharers({ account, workload, workloads }: SidecarFacts): Workload[] {
  return workloads.filter((other) => {
    if (other === workload) return false;
    const { name, namespace } = accountOf(other);
    return name === account.name && isSameNamespace(namespace, account.namespace);
  });
}

/** The containers that belong to the driver's controller: those of the Pod, and of others with the same ServiceAccount. */
export function controllerContainers(facts: SidecarFacts): Container[] {
  return [facts.workload, ...accountSharers(facts)].flatMap(({ containers }) => containers);
}

/** Where the Lease of a container is. */
export function lockNamespaceOf(
  { values, environment }: ReadArguments,
  { namespace }: Workload,
  { fields }: Container,
): Namespace {
  const given = values['leader-election-namespace'];
  const name = given || environment.POD_NAMESPACE || namespace;
  if (name === undefined || name.includes(unknownName) || name.includes('$(')) return { name: undefined };
  if (isLabelName(name)) return { name };
  throw given === ''
    ? fields.problem('env', `with the name POD_NAMESPACE ${notName(name)}`)
    : fields.problem('args', `with --leader-election-namespace ${notName(name)}`);
}
