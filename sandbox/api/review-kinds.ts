/** Kinds that are only posted: the response is in the status, and nothing is stored. */
export const reviewKinds = [
  { group: 'authentication.k8s.io', version: 'v1', plural: 'selfsubjectreviews', kind: 'SelfSubjectReview' },
  { group: 'authentication.k8s.io', version: 'v1', plural: 'tokenreviews', kind: 'TokenReview' },
  { group: 'authorization.k8s.io', version: 'v1', plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview' },
  { group: 'authorization.k8s.io', version: 'v1', plural: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview' },
  { group: 'authorization.k8s.io', version: 'v1', plural: 'subjectaccessreviews', kind: 'SubjectAccessReview' },
] as const;

/** One of them. */
export type ReviewKind = (typeof reviewKinds)[number];

/** The review a path names, if it does. */
export function findReview(group: string, version: string, plural: string): ReviewKind | undefined {
  return reviewKinds.find((kind) => kind.group === group && kind.version === version && kind.plural === plural);
}
