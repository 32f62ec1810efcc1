import { invalidObject } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { qualifiedResource } from './resource-type.ts';
import type { ResourceType } from './resource-type.ts';
import { StatusError } from './status-error.ts';

/** @throws {StatusError} `Invalid` with these complaints, if there are any. */
export function throwErrors(type: ResourceType, name: string, errors: FieldError[]): void {
  if (errors.length > 0) throw invalidObject(type.kind, type.group, name, errors);
}

/** The 409 for a write that does not fit what is stored. */
export function conflict(type: ResourceType, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedResource(type)} ${JSON.stringify(name)}: ${why}`;
  return new StatusError('Conflict', message, {
    details: { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural },
  });
}

/** The 409 for a name that is taken. */
export function alreadyExists(type: ResourceType, name: string): StatusError {
  return new StatusError('AlreadyExists', `${qualifiedResource(type)} ${JSON.stringify(name)} already exists`, {
    details: { name, ...(type.group === '' ? {} : { group: type.group }), kind: type.plural },
  });
}
