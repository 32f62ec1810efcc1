import type { IncomingMessage } from 'node:http';
import { serviceAccountUser } from './authentication.ts';
import type { User } from './authentication.ts';
import type { AccessRequest, Authorization } from './authorization.ts';

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
