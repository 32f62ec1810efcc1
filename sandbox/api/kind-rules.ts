import type { SandboxObject } from './client.ts';
import { type FieldError, invalid } from './field-error.ts';
import { isObject, jsonEqual, type JsonObject } from './json.ts';

/** What rules may depend on besides the object. */
interface RuleContext {
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: number;
}

/** Defaults and checks of one kind. Objects are private copies in their stored form and may be changed. */
export interface KindRules {
  /** Fills in the defaults of an object of a request; on update also those of the stored one, which may be older. */
  complete?(object: SandboxObject): void;
  /** Changes a complete object before the checks, on create. */
  prepareCreate?(object: SandboxObject, context: RuleContext): void;
  /** As `prepareCreate`, for every update of the main resource and of the status. */
  prepareUpdate?(object: SandboxObject, old: SandboxObject, context: RuleContext): void;
  /** Complaints about an object on create and on update. @param old - the object before; none on create. */
  validate?(object: SandboxObject, old?: SandboxObject): FieldError[];
  /** Complaints about the step from `old` to `object`. */
  validateUpdate?(object: SandboxObject, old: SandboxObject): FieldError[];
  /** What is wrong with a name, if the rule is not that of a DNS subdomain. */
  readonly nameProblem?: (name: string) => string;
  /** What is wrong with the `generateName` of an update, if the rule is not that of names. */
  readonly updatedGenerateNameProblem?: (name: string) => string;
}

/** Complaints about those of the fields that are not as they were. An empty list or map is as good as none. */
export function immutableFields(object: JsonObject, old: JsonObject, names: readonly string[]): FieldError[] {
  return names
    .filter((field) => !jsonEqual(withoutEmpty(object[field]), withoutEmpty(old[field])))
    .map((field) => invalid(field, object[field], 'field is immutable'));
}

/** Without lists and maps that are empty. @returns `undefined` for such a one itself. */
export function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(emptyParts);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).map(([field, part]) => [field, withoutEmpty(part)] as const);
  const kept = fields.filter(([, part]) => part !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** An item of a list stays an item, empty or not. */
function emptyParts(item: unknown): unknown {
  return isObject(item) ? (withoutEmpty(item) ?? {}) : item;
}
