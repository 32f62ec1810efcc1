import { ApiError, TransportError } from './api-error.ts';
import type { CallOptions, KubeClient } from './kube-client.ts';
import type { KubeObject, ObjectReference, Resource } from '../kube-object.ts';

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
