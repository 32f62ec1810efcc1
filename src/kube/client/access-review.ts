import type { CallOptions, KubeClient } from './kube-client.ts';
import type { KubeObject, Resource } from '../kube-object.ts';

const accessReviews: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  namespaced: false,
  verbs: ['create'],
};

interface AccessReview extends KubeObject {
  spec: { resourceAttributes: Record<string, string> };
  status?: { allowed?: boolean };
}

/**
 * Whether this process may use a resource of a namespace in all these ways. Every authenticated user may ask that
 * (Kubernetes, "Authorization", section "Checking API access").
 *
 * @throws {ApiError} and {TransportError} when the API server does not respond to it.
 */
export async function mayUse(
  client: KubeClient,
  { group, version, plural }: Resource,
  { namespace, name, verbs }: { namespace: string; name: string; verbs: readonly string[] },
  options: CallOptions = {},
): Promise<boolean> {
  for (const verb of verbs) {
    // a create has no name yet: a rule with resourceNames does not permit it
    const attributes = { group, version, resource: plural, namespace, verb, ...(verb !== 'create' && { name }) };
    const review: AccessReview = {
      apiVersion: `${accessReviews.group}/${accessReviews.version}`,
      kind: accessReviews.kind,
      metadata: { name: '' },
      spec: { resourceAttributes: attributes },
    };
    const { status } = await client.create<AccessReview>(accessReviews, review, options);
    if (status?.allowed !== true) return false;
  }
  return true;
}
