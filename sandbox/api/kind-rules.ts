import type { SandboxObject } from './client.ts';
import type { FieldError } from './field-error.ts';

/** What rules may depend on besides the object. */
export interface RuleContext {
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
