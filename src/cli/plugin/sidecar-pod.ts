/** Finds the Pod of a sidecar: that of the leader, which its Lease names, or the one that was given. */
import { NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { type Lease, leases } from '../../kube/election/lease-record.ts';
import { csiDrivers, pods } from '../../explain/cluster-objects.ts';
import type { KubeObject } from '../../kube/kube-object.ts';
import { silentLogger } from '../../base/logger.ts';
import { leaseName } from '../../run/lock-name.ts';
import { expandVariables } from '../preflight/find-sidecars.ts';

interface Container {
  name: string;
  image?: string;
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: { fieldRef?: { fieldPath: string } } }[];
}

interface Pod extends KubeObject {
  spec?: { nodeName?: string; containers?: Container[] };
}

/** What the user says of it; what is left out is found. */
export interface SidecarQuery {
  /** Name of the CSI driver. */
  driver: string | undefined;
  /** Where to look; undefined: in all namespaces. */
  namespace: string | undefined;
  /** `NAMESPACE/NAME`, or a name in `namespace`. */
  pod: string | undefined;
  container: string | undefined;
}

export interface SidecarPod {
  namespace: string;
  pod: string;
  container: string;
  /** Of the container, with references to variables replaced. */
  args: string[];
}

/** The sidecar cannot be found; the message says what to add. */
export class NoSidecarError extends Error {
  override readonly name = 'NoSidecarError';
}

/** A driver, and the Lease of its sidecars. */
interface FoundDriver {
  driver: string;
  lease: Lease;
}

/**
 * The Lease of a driver's sidecars; without a name, of the only driver that has one.
 *
 * @param options.suffixes - what the name of the Lease ends with: the first that is found counts. Default: the Lease of the election.
 * @throws {NoSidecarError} for none or several, and what requests throw.
 */
export async function driverWithLease(
  client: KubeClient,
  { driver, namespace, suffixes = [''] }: Pick<SidecarQuery, 'driver' | 'namespace'> & { suffixes?: readonly string[] },
  signal: AbortSignal,
): Promise<FoundDriver> {
  const names =
    driver === undefined
      ? (await client.list<KubeObject>(csiDrivers, { signal })).map(({ metadata }) => metadata.name)
      : [driver];
  const found: FoundDriver[] = [];
  for (const name of names) {
    for (const suffix of suffixes) {
      const fieldSelector = `metadata.name=${leaseName(name, silentLogger)}${suffix}`;
      const where = namespace === undefined ? {} : { namespace };
      const own = await client.list<Lease>(leases, { ...where, fieldSelector, signal });
      found.push(...own.map((lease) => ({ driver: name, lease })));
      if (own.length > 0) break;
    }
  }
  const [first, second] = found;
  if (first === undefined) {
    throw new NoSidecarError(
      driver === undefined
        ? 'no CSI driver of the cluster has a Lease of its provisioner. Add --driver or --pod'
        : `there is no Lease of the provisioner of ${driver}. Is the name right? Without leader election, add --pod`,
    );
  }
  if (second === undefined) return first;
  const listed = found.map((each) => `${each.driver} (namespace ${each.lease.metadata.namespace ?? ''})`).join(', ');
  throw new NoSidecarError(`several provisioners have a Lease: ${listed}. Choose one with --driver and --namespace`);
}

/** @throws {NoSidecarError} when it cannot be found, and what requests throw. */
export async function sidecarPod(client: KubeClient, query: SidecarQuery, signal: AbortSignal): Promise<SidecarPod> {
  const pod = await podOf(client, query, signal);
  const { namespace = '', name } = pod.metadata;
  const container = containerOf(pod, query.container);
  return { namespace, pod: name, container: container.name, args: expandedArgs(pod, container) };
}

async function podOf(client: KubeClient, query: SidecarQuery, signal: AbortSignal): Promise<Pod> {
  if (query.pod !== undefined) {
    const [first = '', second] = query.pod.split('/');
    const namespace = second === undefined ? query.namespace : first;
    if (namespace === undefined) throw new NoSidecarError(`--pod must be NAMESPACE/NAME, or come with --namespace`);
    const name = second ?? first;
    return await client.get<Pod>(pods, { namespace, name }, { signal });
  }
  const { driver, lease } = await driverWithLease(client, query, signal);
  const { namespace = '' } = lease.metadata;
  // the identity is the host name of the Pod, to which some add a random part
  const [host = ''] = (lease.spec?.holderIdentity ?? '').split('_');
  if (host === '') throw new NoSidecarError(`nobody holds the Lease of the provisioner of ${driver}. Add --pod`);
  try {
    return await client.get<Pod>(pods, { namespace, name: host }, { signal });
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
  // a Pod in the network of its node has the name of the node
  const onNode = await client.list<Pod>(pods, { namespace, fieldSelector: `spec.nodeName=${host}`, signal });
  const own = onNode.filter((pod) => sidecarsOf(pod).length > 0);
  const [only] = own;
  if (only !== undefined && own.length === 1) return only;
  throw new NoSidecarError(
    `no Pod of namespace ${namespace} is ${host}, which holds the Lease of ${driver}. Add --pod`,
  );
}

function sidecarsOf({ spec }: Pod): Container[] {
  return (spec?.containers ?? []).filter(
    ({ name, image = '' }) => name.includes('provisioner') || image.includes('provisioner'),
  );
}

function containerOf(pod: Pod, named: string | undefined): Container {
  const all = pod.spec?.containers ?? [];
  const fitting = named === undefined ? sidecarsOf(pod) : all.filter(({ name }) => name === named);
  const [first] = fitting;
  if (first !== undefined && fitting.length === 1) return first;
  const what = named === undefined ? 'which container is the sidecar is not clear' : `it has no container ${named}`;
  const names = all.map(({ name }) => name).join(', ');
  throw new NoSidecarError(`Pod ${pod.metadata.name}: ${what}. Choose one with --container: ${names}`);
}

/** As the kubelet passes them; a reference to what it has from elsewhere stays. */
function expandedArgs(pod: Pod, { args = [], env = [] }: Container): string[] {
  const fields: Readonly<Record<string, string | undefined>> = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace,
    'spec.nodeName': pod.spec?.nodeName,
  };
  const values = new Map(
    env.map(({ name, value, valueFrom }) => [name, value ?? fields[valueFrom?.fieldRef?.fieldPath ?? '']]),
  );
  return args.map((arg) => expandVariables(arg, values));
}
