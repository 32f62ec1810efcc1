/** What the API server says of the account of this process: what it may do, and which Pod it belongs to. */
import type { KubeObject, ObjectReference, Resource } from '../kube-object.ts';
import { ApiError, TransportError } from './api-error.ts';
import type { CallOptions, KubeClient } from './kube-client.ts';

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

const selfReviews: Resource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'selfsubjectreviews',
  kind: 'SelfSubjectReview',
  namespaced: false,
  verbs: ['create'],
};

interface SelfReview extends KubeObject {
  status?: { userInfo?: { username?: string; extra?: Record<string, string[] | undefined> } };
}

const accountPattern = /^system:serviceaccount:([^:]+):[^:]+$/;

/**
 * The Pod of this process, for events about it: the one to which the token of the service account is bound. Every authenticated
 * user may create a SelfSubjectReview (Kubernetes, "Authenticating", section "API access to authentication information for a
 * client").
 *
 * @returns undefined outside of a Pod, for another kind of credentials, before Kubernetes 1.28, and where the API server does not
 * respond.
 */
export async function ownPod(client: KubeClient, options: CallOptions = {}): Promise<ObjectReference | undefined> {
  const { group, version, kind } = selfReviews;
  const review: SelfReview = { apiVersion: `${group}/${version}`, kind, metadata: { name: '' } };
  try {
    const { status } = await client.create(selfReviews, review, { ...options, optional: 'reported' });
    const { username = '', extra = {} } = status?.userInfo ?? {};
    const [, namespace] = accountPattern.exec(username) ?? [];
    const [name] = extra['authentication.kubernetes.io/pod-name'] ?? [];
    const [uid] = extra['authentication.kubernetes.io/pod-uid'] ?? [];
    if (namespace === undefined || name === undefined || uid === undefined) return undefined;
    return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
  } catch (error) {
    if (error instanceof ApiError || error instanceof TransportError) return undefined;
    throw error;
  }
}
