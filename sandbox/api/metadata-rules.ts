import type { SandboxMeta } from './client.ts';
import { type FieldError, forbidden, ifFilled, invalid, required, syntax, tooLong } from './field-error.ts';
import { qualifiedNameProblem, subdomainProblem } from './names.ts';
import { labelErrors } from './selector-rules.ts';

const annotationBytes = 262_144;

/** Names that finalizers without a domain may have. */
const plainFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion'];

/** How strict the rules for metadata are. */
export interface MetadataRules {
  /** What is wrong with a name, if the rule is not that of a DNS subdomain. */
  readonly nameProblem?: ((name: string) => string) | undefined;
  /** Whether finalizers without a domain may have any name. */
  readonly anyFinalizer?: boolean;
  /** What is wrong with a `generateName`, if the rule is not that of names. */
  readonly generateNameProblem?: ((name: string) => string) | undefined;
}

/** Complaints about `metadata` that hold for every kind. */
export function metadataErrors(meta: SandboxMeta, rules: MetadataRules): FieldError[] {
  const { nameProblem = subdomainProblem, anyFinalizer = false, generateNameProblem = nameProblem } = rules;
  return [
    ...nameErrors(meta, nameProblem),
    ...generateNameErrors(meta, generateNameProblem),
    ...finalizerSyntaxErrors(meta),
    ...labelErrors(meta.labels ?? {}, 'metadata.labels'),
    ...annotationErrors(meta.annotations ?? {}),
    ...(anyFinalizer ? [] : plainFinalizerErrors(meta)),
    ...ownerErrors(meta),
  ];
}

function nameErrors({ name }: SandboxMeta, nameProblem: (name: string) => string): FieldError[] {
  if (name === '') return [required('metadata.name', 'name or generateName is required')];
  return syntax(nameProblem)(name, 'metadata.name');
}

/** A name to come may end in a dash. */
function generateNameErrors({ generateName }: SandboxMeta, nameProblem: (name: string) => string): FieldError[] {
  return ifFilled(syntax((name) => nameProblem(name.replace(/(?<=.)-$/, 'a'))))(generateName, 'metadata.generateName');
}

function annotationErrors(annotations: Readonly<Record<string, string>>): FieldError[] {
  const keys = syntax((key) => qualifiedNameProblem(key.toLowerCase()));
  const errors = Object.keys(annotations).flatMap((key) => keys(key, 'metadata.annotations'));
  const bytes = Object.entries(annotations)
    .flat()
    .reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return bytes > annotationBytes ? [...errors, tooLong('metadata.annotations', annotationBytes)] : errors;
}

function finalizerSyntaxErrors({ finalizers = [] }: SandboxMeta): FieldError[] {
  const field = 'metadata.finalizers';
  const errors = finalizers.flatMap((finalizer) => syntax(qualifiedNameProblem)(finalizer, field));
  return finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')
    ? [...errors, invalid(field, finalizers, 'orphan and foregroundDeletion may not both be set')]
    : errors;
}

function plainFinalizerErrors({ finalizers = [] }: SandboxMeta): FieldError[] {
  return finalizers.flatMap((finalizer, index) =>
    finalizer.includes('/') || plainFinalizers.includes(finalizer)
      ? []
      : [invalid(`metadata.finalizers[${index}]`, finalizer, 'must be a standard name or have a domain')],
  );
}

function ownerErrors({ ownerReferences = [] }: SandboxMeta): FieldError[] {
  const field = 'metadata.ownerReferences';
  const errors = ownerReferences.flatMap((owner) => oneOwnerErrors(owner, field));
  if (ownerReferences.filter(({ controller }) => controller === true).length > 1) {
    errors.push(invalid(field, ownerReferences, 'Only one reference can have Controller set to true'));
  }
  return errors;
}

function oneOwnerErrors(owner: object, field: string): FieldError[] {
  const { apiVersion = '', kind = '', name = '', uid = '' } = owner as Partial<Record<string, string>>;
  const version = versionOf(apiVersion);
  const parts = Object.entries({ apiVersion: version, kind, name, uid });
  const errors = parts
    .filter(([, value]) => value === '')
    .map(([part]) => invalid(`${field}.${part}`, '', `${part === 'apiVersion' ? 'version' : part} must not be empty`));
  return version === 'v1' && apiVersion === 'v1' && kind === 'Event'
    ? [...errors, invalid(field, owner, 'an Event may not be an owner')]
    : errors;
}

/** The version in `version` or `group/version`; empty if there is none. */
function versionOf(apiVersion: string): string {
  const parts = apiVersion.split('/');
  return parts.length > 2 ? '' : (parts.at(-1) ?? '');
}

/** Complaints about what an update would set and cannot. */
export function serverFieldErrors(given: SandboxMeta, old: SandboxMeta): FieldError[] {
  const { deletionTimestamp, deletionGracePeriodSeconds: grace } = given;
  const errors: FieldError[] = [];
  if (deletionTimestamp !== undefined && old.deletionTimestamp === undefined) {
    errors.push(invalid('metadata.deletionTimestamp', deletionTimestamp, 'field is immutable'));
  }
  if (grace !== undefined && grace !== old.deletionGracePeriodSeconds) {
    errors.push(invalid('metadata.deletionGracePeriodSeconds', grace, 'field is immutable'));
  }
  return errors;
}

/** Complaint about a negative generation of a new object. */
export function generationErrors({ generation = 0 }: SandboxMeta): FieldError[] {
  if (generation >= 0) return [];
  return [invalid('metadata.generation', generation, 'must be greater than or equal to 0')];
}

/** Complaint about finalizers added to an object that is being deleted. */
export function finalizerErrors(meta: SandboxMeta, old: SandboxMeta): FieldError[] {
  if (old.deletionTimestamp === undefined) return [];
  const added = (meta.finalizers ?? []).filter((finalizer) => !(old.finalizers ?? []).includes(finalizer));
  if (added.length === 0) return [];
  const names = added.map((name) => JSON.stringify(name)).join(', ');
  return [
    forbidden(
      'metadata.finalizers',
      `no new finalizers can be added if the object is being deleted, found new finalizers []string{${names}}`,
    ),
  ];
}
