import type { IncomingMessage } from 'node:http';
import { serviceAccountUser, type User } from './authentication.ts';
import { arrayAt, isObject, type JsonObject, stringAt, stringsAt } from './json.ts';
import { qualifiedResource } from './resource-type.ts';
import { StatusError } from './status-error.ts';
import type { Store } from './store.ts';

/** What a request wants to do. */
export interface AccessRequest {
  readonly user: User;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** One permission, in the words of RBAC's `PolicyRule`; `*` stands for everything. */
export interface PolicyRule {
  readonly apiGroups?: readonly string[];
  /** Such as `pods` and `pods/status`. */
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** Permissions handed to users and groups without RBAC objects. */
export interface Grant {
  /** Names of users or groups. */
  readonly subjects: readonly string[];
  readonly rules: readonly PolicyRule[];
  /** Only in this namespace; everywhere if absent. */
  readonly namespace?: string;
}

/** Who may do what. */
export interface AuthorizationOptions {
  /** `allowAll` is the default; `rbac` asks the RBAC objects of the store and `grants`. */
  readonly mode?: 'allowAll' | 'rbac';
  readonly grants?: readonly Grant[];
  /** Takes each request for a resource that is refused. Default: nothing does. */
  readonly onForbidden?: (request: AccessRequest) => void;
}

/** Decides by rules that may change at any time; open watches are not touched. */
export class Authorization {
  readonly #store: Store;
  readonly #mode: 'allowAll' | 'rbac';
  readonly #onForbidden: (request: AccessRequest) => void;
  #grants: readonly Grant[];

  constructor(options: AuthorizationOptions & { store: Store }) {
    this.#store = options.store;
    this.#mode = options.mode ?? 'allowAll';
    this.#grants = options.grants ?? [];
    this.#onForbidden = options.onForbidden ?? (() => undefined);
  }

  /** Replaces the grants; holds from the next request on. */
  setGrants(grants: readonly Grant[]): void {
    this.#grants = grants;
  }

  allows(request: AccessRequest): boolean {
    if (this.#mode === 'allowAll' || isMaster(request.user)) return true;
    for (const rule of this.#rulesFor(request.user, request.namespace)) if (permits(rule, request)) return true;
    return false;
  }

  /** @throws {StatusError} `Forbidden` unless it is allowed. */
  require(request: AccessRequest): void {
    if (this.allows(request)) return;
    this.#onForbidden(request);
    throw forbiddenError(request);
  }

  /** Everything the user may do in the namespace, and cluster-wide; the same rule may come more than once. */
  rulesOf(user: User, namespace: string): PolicyRule[] {
    if (this.#mode === 'rbac' && !isMaster(user)) return [...this.#rulesFor(user, namespace)];
    return [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ];
  }

  /** Whether a path that is no resource may be asked for; what everybody may see is in the bootstrap roles. */
  allowsPath(user: User, path: string, method: string): boolean {
    if (this.#mode === 'allowAll' || isMaster(user)) return true;
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    for (const rule of this.#rulesFor(user, '')) {
      const urls = rule.nonResourceURLs ?? [];
      const fits = urls.some((url) => (url.endsWith('*') ? path.startsWith(url.slice(0, -1)) : url === path));
      if (fits && holds(rule.verbs, verb)) return true;
    }
    return false;
  }

  *#rulesFor(user: User, namespace: string): Generator<PolicyRule> {
    for (const grant of this.#grants) {
      const here = grant.namespace === undefined || (namespace !== '' && grant.namespace === namespace);
      if (here && grant.subjects.some((subject) => subject === user.name || user.groups.includes(subject))) {
        yield* grant.rules;
      }
    }
    for (const { object } of this.#store.list('clusterrolebindings.rbac.authorization.k8s.io')) {
      if (isSubject(object, user)) yield* this.#roleRules(object, '');
    }
    if (namespace === '') return;
    for (const { object } of this.#store.list('rolebindings.rbac.authorization.k8s.io', namespace)) {
      if (isSubject(object, user)) yield* this.#roleRules(object, namespace);
    }
  }

  #roleRules(binding: unknown, namespace: string): PolicyRule[] {
    const name = stringAt(binding, 'roleRef', 'name');
    const role =
      stringAt(binding, 'roleRef', 'kind') === 'ClusterRole'
        ? this.#store.get('clusterroles.rbac.authorization.k8s.io', '', name)
        : this.#store.get('roles.rbac.authorization.k8s.io', namespace, name);
    return arrayAt(role?.object, 'rules').map((rule) => {
      const fields = ['apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const;
      const given = fields
        .map((field) => [field, stringsAt(rule, field)] as const)
        .filter(([, list]) => list.length > 0);
      return { verbs: stringsAt(rule, 'verbs'), ...Object.fromEntries(given) };
    });
  }
}

function isMaster(user: User): boolean {
  return user.groups.includes('system:masters');
}

function isSubject(binding: unknown, user: User): boolean {
  return arrayAt(binding, 'subjects').some((subject) => {
    if (!isObject(subject)) return false;
    const name = stringAt(subject, 'name');
    switch (subject['kind']) {
      case 'User':
        return name === user.name;
      case 'Group':
        return user.groups.includes(name);
      case 'ServiceAccount':
        return user.name === `system:serviceaccount:${stringAt(subject, 'namespace')}:${name}`;
      default:
        return false;
    }
  });
}

function permits(rule: PolicyRule, request: AccessRequest): boolean {
  if (!holds(rule.verbs, request.verb) || !holds(rule.apiGroups ?? [], request.group)) return false;
  const { resource, subresource } = request;
  const resources = rule.resources ?? [];
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  if (!holds(resources, full) && !(subresource !== '' && resources.includes(`*/${subresource}`))) return false;
  const names = rule.resourceNames ?? [];
  return names.length === 0 || (request.name !== '' && names.includes(request.name));
}

function holds(list: readonly string[], wanted: string): boolean {
  return list.includes('*') || list.includes(wanted);
}

/** The 403 for a request for a resource, in the exact words of a real server. */
function forbiddenError(request: AccessRequest): StatusError {
  const { user, verb, group, resource, subresource, namespace, name } = request;
  const what = qualifiedResource({ group, plural: resource }) + (name === '' ? '' : ` ${JSON.stringify(name)}`);
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return new StatusError(
    'Forbidden',
    `${what} is forbidden: User ${JSON.stringify(user.name)} cannot ${verb} resource ${JSON.stringify(full)} ` +
      `in API group ${JSON.stringify(group)} ${where}`,
    { details: { ...(name === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind: resource } },
  );
}

/** The 403 for a path that is no resource. */
export function forbiddenPath(user: User, method: string, path: string): StatusError {
  return new StatusError(
    'Forbidden',
    `forbidden: User ${JSON.stringify(user.name)} cannot ${method.toLowerCase()} path ${JSON.stringify(path)}`,
    { details: {} },
  );
}

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

/**
 * Whom a request acts for: by itself, or by the `Impersonate-User` and `Impersonate-Group` headers of `kubectl --as`
 * (Kubernetes, "User impersonation").
 *
 * @throws {StatusError} `Forbidden` unless the authenticated user may impersonate the user and every group.
 */
export function impersonate(request: IncomingMessage, by: User, authorization: Authorization): User {
  const { 'impersonate-user': [name] = [], 'impersonate-group': groups = [] } = request.headersDistinct;
  if (name === undefined) return by;
  const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(name);
  const subject =
    account === null
      ? { resource: 'users', namespace: '', name }
      : { resource: 'serviceaccounts', namespace: account[1] ?? '', name: account[2] ?? '' };
  for (const each of [subject, ...groups.map((group) => ({ resource: 'groups', namespace: '', name: group }))]) {
    const access: AccessRequest = { user: by, verb: 'impersonate', group: '', subresource: '', ...each };
    authorization.require(access);
  }
  if (groups.length > 0) return { name, groups: [...groups, 'system:authenticated'] };
  if (account !== null) return serviceAccountUser(subject.namespace, subject.name);
  return { name, groups: ['system:authenticated'] };
}
