import type { Authentication, User } from './authentication.ts';
import type { AccessRequest, Authorization, PolicyRule } from './authorization.ts';
import { type JsonObject, objectAt, stringAt, stringsAt } from './json.ts';

/** The posted review with its status filled in (Kubernetes, "Authorization", "Checking API access"). */
export function reviewed(
  review: ReviewKind,
  body: JsonObject,
  by: User,
  { authentication, authorization }: { authentication: Authentication; authorization: Authorization },
): object {
  const spec = objectAt(body, 'spec');
  const envelope = {
    kind: review.kind,
    apiVersion: `${review.group}/${review.version}`,
    metadata: { creationTimestamp: null },
  };
  switch (review.kind) {
    case 'SelfSubjectReview':
      return { ...envelope, status: { userInfo: userInfo(by) } };
    case 'TokenReview': {
      const user = authentication.userOfToken(stringAt(spec, 'token'));
      const status = user === undefined ? { authenticated: false } : { authenticated: true, user: userInfo(user) };
      return { ...envelope, spec, status };
    }
    case 'SelfSubjectAccessReview':
      return { ...envelope, spec, status: { allowed: isAllowed(authorization, by, spec) } };
    case 'SelfSubjectRulesReview': {
      const rules = authorization.rulesOf(by, stringAt(spec, 'namespace'));
      const [resourceRules, nonResourceRules] = [rules.filter(hasResources), rules.filter(hasPaths)];
      return { ...envelope, spec, status: { resourceRules, nonResourceRules, incomplete: false } };
    }
    case 'SubjectAccessReview': {
      const user: User = { name: stringAt(spec, 'user'), groups: stringsAt(spec, 'groups') };
      return { ...envelope, spec, status: { allowed: isAllowed(authorization, user, spec) } };
    }
  }
}

function isAllowed(authorization: Authorization, user: User, spec: JsonObject): boolean {
  const path = objectAt(spec, 'nonResourceAttributes');
  if (Object.keys(path).length > 0) {
    return authorization.allowsPath(user, stringAt(path, 'path'), stringAt(path, 'verb'));
  }
  const wanted = objectAt(spec, 'resourceAttributes');
  const request: AccessRequest = {
    user,
    verb: stringAt(wanted, 'verb'),
    group: stringAt(wanted, 'group'),
    resource: stringAt(wanted, 'resource'),
    subresource: stringAt(wanted, 'subresource'),
    namespace: stringAt(wanted, 'namespace'),
    name: stringAt(wanted, 'name'),
  };
  return authorization.allows(request);
}

const hasResources = ({ resources = [] }: PolicyRule): boolean => resources.length > 0;
const hasPaths = ({ nonResourceURLs = [] }: PolicyRule): boolean => nonResourceURLs.length > 0;

function userInfo({ name, uid, groups }: User): object {
  return { username: name, ...(uid === undefined ? {} : { uid }), groups };
}

/** Kinds that are only posted: the response is in the status, and nothing is stored. */
export const reviewKinds = [
  { group: 'authentication.k8s.io', version: 'v1', plural: 'selfsubjectreviews', kind: 'SelfSubjectReview' },
  { group: 'authentication.k8s.io', version: 'v1', plural: 'tokenreviews', kind: 'TokenReview' },
  { group: 'authorization.k8s.io', version: 'v1', plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview' },
  { group: 'authorization.k8s.io', version: 'v1', plural: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview' },
  { group: 'authorization.k8s.io', version: 'v1', plural: 'subjectaccessreviews', kind: 'SubjectAccessReview' },
] as const;

/** One of them. */
type ReviewKind = (typeof reviewKinds)[number];

/** The review a path names, if it does. */
export function findReview(group: string, version: string, plural: string): ReviewKind | undefined {
  return reviewKinds.find((kind) => kind.group === group && kind.version === version && kind.plural === plural);
}
