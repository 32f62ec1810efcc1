/** The object that owns the capacity objects: when it is deleted, the garbage collector deletes them. */
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { KubeObject, ObjectName, OwnerReference, Resource } from '../kube/kube-object.ts';

/** The owner cannot be found; the message names the object at which the chain of owners ends. */
class OwnerError extends Error {
  override readonly name = 'OwnerError';
}

export interface OwnerQuestion {
  client: KubeClient;
  /** Of the pod, and so of all owners above it. */
  namespace: string;
  podName: string;
  /** Steps from the pod upwards: 0 is the pod itself. Not negative. */
  level: number;
  signal?: AbortSignal | undefined;
}

/** One object in the chain of owners. */
interface ChainLink {
  apiVersion: string;
  kind: string;
  name: string;
}

const pods: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

/**
 * Walks up from a pod along the controlling owners (Kubernetes, "Owners and Dependents"). The last one is not itself
 * read, so level 1 needs `get` on pods alone.
 *
 * @throws {OwnerError} when an object is missing, may not be read, or has no controlling owner.
 */
export async function findOwner({ client, namespace, podName, level, signal }: OwnerQuestion): Promise<OwnerReference> {
  let link: ChainLink = { apiVersion: 'v1', kind: 'Pod', name: podName };
  let object = await read(() => client.get(pods, { namespace, name: podName }, { signal }));
  for (let step = 1; step <= level; step += 1) {
    const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined) {
      throw new OwnerError(
        `${link.apiVersion}/${link.kind} "${link.name}" in namespace "${namespace}" has no controlling owner, ` +
          'cannot unwind the ownership further',
      );
    }
    const { apiVersion, kind, name, uid } = owner;
    const group = parseApiVersion(apiVersion);
    if (step === level) return { apiVersion, kind, name, uid, controller: true };
    link = { apiVersion, kind, name };
    object = await read(async () => await getByKind(client, { ...group, kind }, { namespace, name }, signal));
  }
  return { ...link, uid: object.metadata.uid ?? '', controller: true };
}

function parseApiVersion(text: string): { group: string; version: string } {
  const parts = text.split('/');
  if (parts.length > 2) {
    throw new OwnerError(`parse OwnerReference.APIVersion: unexpected GroupVersion string: ${text}`);
  }
  const version = parts.pop() ?? '';
  return { group: parts[0] ?? '', version };
}

async function read(get: () => Promise<KubeObject>): Promise<KubeObject> {
  try {
    return await get();
  } catch (error) {
    throw new OwnerError(`get object: ${(error as Error).message}`, { cause: error });
  }
}

/** Reads an object of any kind, at the path that discovery gives (Kubernetes, "API discovery"). */
async function getByKind(
  client: KubeClient,
  { group, version, kind }: { group: string; version: string; kind: string },
  { namespace, name }: Required<ObjectName>,
  signal: AbortSignal | undefined,
): Promise<KubeObject> {
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const { resources = [] } = await client.raw<{ resources?: ServedResource[] }>(path, { signal });
  const served = resources.find((each) => each.kind === kind && !each.name.includes('/'));
  if (served === undefined) {
    throw new OwnerError(`no matches for kind "${kind}" in version "${path.replace(/^\/apis?\//, '')}"`);
  }
  const resource = { group, version, plural: served.name, kind, namespaced: served.namespaced };
  return await client.get(resource, { ...(served.namespaced && { namespace }), name }, { signal });
}

/** meta/v1 APIResource. */
interface ServedResource {
  name: string;
  kind: string;
  namespaced: boolean;
}
