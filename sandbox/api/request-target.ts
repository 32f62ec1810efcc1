import { StatusError } from './status-error.ts';

/** What a path and a method mean, before it is checked whether it exists. */
export type RequestTarget = ResourceTarget | { readonly kind: 'path'; readonly path: string };

/** A request for a resource. */
export interface ResourceTarget {
  readonly kind: 'resource';
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Empty for cluster-scoped resources and for all namespaces at once. */
  readonly namespace: string;
  /** Empty for collections. */
  readonly name: string;
  readonly subresource: string;
}

/** API verbs as authorisation rules name them (Kubernetes, "Authorization Overview"). */
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

const namespaceParts = new Set(['status', 'finalize']);

/** @throws {StatusError} `BadRequest` for a path that cannot be decoded. */
export function parseTarget(pathname: string): RequestTarget {
  const segments = pathname
    .split('/')
    .filter((segment) => segment !== '')
    .map(decode);
  const [root, ...rest] = segments;
  const other = { kind: 'path' as const, path: `/${segments.join('/')}` };
  if (root === 'api' && rest.length >= 2) return resource('', rest[0] ?? '', rest.slice(1)) ?? other;
  if (root === 'apis' && rest.length >= 3) return resource(rest[0] ?? '', rest[1] ?? '', rest.slice(2)) ?? other;
  return other;
}

function resource(group: string, version: string, parts: string[]): ResourceTarget | undefined {
  let namespace = '';
  let own = parts;
  if (parts[0] === 'namespaces' && parts.length > 2 && !(parts.length === 3 && namespaceParts.has(parts[2] ?? ''))) {
    namespace = parts[1] ?? '';
    own = parts.slice(2);
  }
  const [plural = '', name = '', subresource = '', ...more] = own;
  if (more.length > 0) return undefined;
  return { kind: 'resource', group, version, plural, namespace, name, subresource };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new StatusError('BadRequest', `the path segment ${JSON.stringify(segment)} cannot be decoded`);
  }
}

/** The verb of a request for a resource, or `undefined` if the method has none. */
export function verbOf(method: string, target: ResourceTarget, watch: boolean): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (watch) return 'watch';
      return target.name === '' ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return target.name === '' ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}
