/** The containers of the manifests that are the Go sidecar. */
import { nameList } from '../../base/name-list.ts';
import { shortValue } from '../../base/short-value.ts';
import { isProvisionerContainer, isProvisionerImage } from './go-sidecar.ts';
import { type Manifest, ManifestError } from './manifest.ts';
import type { SidecarContainer } from './sidecar-facts.ts';
import { type Workload, workloadOf } from './workload.ts';

/** The workloads, without those that others of the manifests have made, such as the Pods of a Deployment. */
export function workloadsIn(manifests: readonly Manifest[], namespace: string | undefined): Workload[] {
  const all = manifests.flatMap((manifest) => workloadOf(manifest, namespace) ?? []);
  return all.filter((each) => !isMadeByAnother(each, all));
}

function isMadeByAnother({ manifest, name, namespace }: Workload, all: readonly Workload[]): boolean {
  const owners = manifest.fields.part('metadata')?.parts('ownerReferences') ?? [];
  if (!owners.some((owner) => owner.flag('controller') === true)) return false;
  return all.some(
    (other) => other.manifest !== manifest && other.namespace === namespace && name.startsWith(`${other.name}-`),
  );
}

/**
 * @param named - the container's name; undefined: those that are known by image, or by name and arguments.
 * @throws {ManifestError} where there is none; it says what there is instead.
 */
export function findSidecars(
  manifests: readonly Manifest[],
  workloads: readonly Workload[],
  named: string | undefined,
): SidecarContainer[] {
  const found = workloads.flatMap((workload) =>
    workload.containers
      .filter((container) => (named === undefined ? isProvisionerContainer(container) : container.name === named))
      .map((container) => ({ workload, container })),
  );
  if (found.length > 0) return found;
  throw new ManifestError(nothingFound(manifests, workloads, named));
}

function nothingFound(
  manifests: readonly Manifest[],
  workloads: readonly Workload[],
  named: string | undefined,
): string {
  const what =
    named === undefined ? 'no container is the Go sidecar csi-provisioner' : `no container is called ${named}`;
  const operator = manifests.find(({ kind, fields }) => kind !== 'Secret' && namesImage(fields.everyText()));
  if (operator !== undefined) {
    const { kind, name } = operator;
    return `${what}, but ${kind} ${shortValue(name)} names its image: an operator in the cluster seems to create the Deployment. Pass that Deployment: kubectl get deployment -n NAMESPACE NAME -o yaml | csi-provisioner preflight FILE... -`;
  }
  const containers = workloads.flatMap(({ kind, name, containers: own }) =>
    own.map((container) => `${container.name} of ${kind} ${name}`),
  );
  if (containers.length === 0) {
    return `${what}: none of the ${manifests.length} objects runs Pods. Pass the file with the driver's controller`;
  }
  return `${what}. Choose one with --container, or pass the file with the driver's controller. There are: ${nameList(containers, 10)}`;
}

function namesImage(texts: Iterable<string>): boolean {
  for (const text of texts) {
    const words = text.split(/[\s,;"'=]+/, 10_000);
    if (words.some((word) => /[/:]/.test(word) && isProvisionerImage(word))) return true;
  }
  return false;
}
