import { qualifiedResource } from './resource-type.ts';
import type { ResourceType } from './resource-type.ts';
import { StatusError } from './status-error.ts';

/** The 404 for a missing object. */
export function notFound(type: ResourceType, name: string): StatusError {
  return new StatusError('NotFound', `${qualifiedResource(type)} ${JSON.stringify(name)} not found`, {
    details: { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural },
  });
}

/** The 404 for a path that leads nowhere. */
export function noSuchPath(): StatusError {
  return new StatusError('NotFound', 'the server could not find the requested resource', { details: {} });
}
