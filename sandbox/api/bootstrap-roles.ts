import type { JsonObject } from './json.ts';

const rbacGroup = 'rbac.authorization.k8s.io';
const metadata = (name: string): JsonObject => ({ name, labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } });
const selfReviews = ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'];
const publicPaths = ['/healthz', '/livez', '/readyz', '/version', '/version/'];

const roles = {
  'cluster-admin': {
    rules: [
      { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
      { nonResourceURLs: ['*'], verbs: ['*'] },
    ],
    groups: ['system:masters'],
  },
  'system:basic-user': {
    rules: [
      { apiGroups: ['authorization.k8s.io'], resources: selfReviews, verbs: ['create'] },
      { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
    ],
    groups: ['system:authenticated'],
  },
  'system:discovery': {
    rules: [
      { nonResourceURLs: ['/', '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'], verbs: ['get'] },
      { nonResourceURLs: publicPaths, verbs: ['get'] },
    ],
    groups: ['system:authenticated'],
  },
  'system:public-info-viewer': {
    rules: [{ nonResourceURLs: publicPaths, verbs: ['get'] }],
    groups: ['system:authenticated', 'system:unauthenticated'],
  },
};

/** The roles and bindings that a cluster begins with (Kubernetes, "Using RBAC Authorization", "API discovery roles"). */
export const bootstrapRoles: readonly { readonly plural: string; readonly object: JsonObject }[] = Object.entries(
  roles,
).flatMap(([name, { rules, groups }]) => [
  { plural: 'clusterroles', object: { metadata: metadata(name), rules } },
  {
    plural: 'clusterrolebindings',
    object: {
      metadata: metadata(name),
      roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name },
      subjects: groups.map((group) => ({ kind: 'Group', apiGroup: rbacGroup, name: group })),
    },
  },
]);
