import type { SandboxMeta } from './client.ts';
import { forbidden, invalid, required, tooLong } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { labelValueProblem, qualifiedNameProblem, subdomainProblem } from './names.ts';

const annotationBytes = 262_144;

/** Complaints about `metadata` that hold for every kind. */
export function metadataErrors(
  meta: SandboxMeta,
  nameProblem: (name: string) => string = subdomainProblem,
): FieldError[] {
  const errors: FieldError[] = [];
  if (meta.name === '') errors.push(required('metadata.name', 'name or generateName is required'));
  else {
    const problem = nameProblem(meta.name);
    if (problem !== '') errors.push(invalid('metadata.name', meta.name, problem));
  }
  for (const [key, value] of Object.entries(meta.labels ?? {})) {
    const keyProblem = qualifiedNameProblem(key);
    if (keyProblem !== '') errors.push(invalid('metadata.labels', key, keyProblem));
    const valueProblem = labelValueProblem(value);
    if (valueProblem !== '') errors.push(invalid('metadata.labels', value, valueProblem));
  }
  let bytes = 0;
  for (const [key, value] of Object.entries(meta.annotations ?? {})) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    const problem = qualifiedNameProblem(key.toLowerCase());
    if (problem !== '') errors.push(invalid('metadata.annotations', key, problem));
  }
  if (bytes > annotationBytes) errors.push(tooLong('metadata.annotations', annotationBytes));
  for (const finalizer of meta.finalizers ?? []) {
    const problem = qualifiedNameProblem(finalizer);
    if (problem !== '') errors.push(invalid('metadata.finalizers', finalizer, problem));
  }
  return [...errors, ...ownerErrors(meta)];
}

function ownerErrors({ ownerReferences = [] }: SandboxMeta): FieldError[] {
  const errors: FieldError[] = [];
  for (const owner of ownerReferences) {
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      const value: unknown = owner[field];
      if (value === undefined || value === '') {
        errors.push(
          invalid(
            `metadata.ownerReferences.${field}`,
            '',
            field === 'apiVersion' ? 'version must not be empty' : 'must not be empty',
          ),
        );
      }
    }
  }
  if (ownerReferences.filter(({ controller }) => controller === true).length > 1) {
    errors.push(
      invalid('metadata.ownerReferences', ownerReferences, 'Only one reference can have Controller set to true'),
    );
  }
  return errors;
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
