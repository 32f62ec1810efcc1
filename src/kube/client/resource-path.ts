import { shortValue } from '../../base/short-value.ts';
import type { Resource } from '../kube-object.ts';

export interface PathParts {
  namespace?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
  /** The namespace of a namespaced resource must be given (everything but list and watch). */
  required?: boolean;
}

/**
 * The path of a resource or of one object.
 *
 * @throws {TypeError} before anything is sent, when a part cannot be in a path: an empty namespace where
 * one is needed, `.` or `..`, a slash or a percent sign.
 */
export function resourcePath(resource: Resource, parts: PathParts): string {
  const { namespace, name, subresource, required = false } = parts;
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  let path = root;
  if (resource.namespaced) {
    if (namespace !== undefined && namespace !== '') path += `/namespaces/${segment(namespace, resource, 'namespace')}`;
    else if (required) throw new TypeError(`${resource.plural}: a namespace is needed, got an empty one`);
  }
  path += `/${resource.plural}`;
  if (name !== undefined) path += `/${segment(name, resource, 'name')}`;
  if (subresource !== undefined) path += `/${segment(subresource, resource, 'subresource')}`;
  return path;
}

function segment(text: string, resource: Resource, what: string): string {
  if (text === '' || text === '.' || text === '..' || /[/%]/.test(text)) {
    throw new TypeError(`${resource.plural}: ${JSON.stringify(shortValue(text))} cannot be a ${what}`);
  }
  return encodeURIComponent(text);
}
