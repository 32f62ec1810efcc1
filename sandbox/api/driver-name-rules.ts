import type { Check } from './field-checks.ts';
import { isEmpty, isLongerThan } from './field-checks.ts';
import { invalid, required, tooLong } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { isObject } from './json.ts';
import { qualifiedNameProblem, subdomainProblem } from './names.ts';

const nameBytes = 63;
const parameterCount = 512;
const parameterBytes = 262_144;

/** The name of a CSI driver where only such a one can stand: a DNS subdomain in any case, of at most 63 bytes. */
export const csiDriverName: Check = (value, path) => {
  if (isEmpty(value)) return [required(path)];
  const problem = subdomainProblem(String(value).toLowerCase());
  return [
    ...(isLongerThan(value, nameBytes) ? [tooLong(path, nameBytes)] : []),
    ...(problem === '' ? [] : [invalid(path, value, problem)]),
  ];
};

/** The name of whatever provisions: a qualified name in any case. */
export const provisionerName: Check = (value, path) => {
  if (isEmpty(value)) return [required(path)];
  const problem = qualifiedNameProblem(String(value).toLowerCase());
  return problem === '' ? [] : [invalid(path, value, problem)];
};

/** Parameters of a class: not too many, not too long, all with a key. */
export const parameters: Check = (value, path) => {
  const entries = isObject(value) ? Object.entries(value) : [];
  if (entries.length > parameterCount) return [tooLong(path, parameterCount)];
  const errors: FieldError[] = entries.some(([key]) => key === '')
    ? [invalid(path, '', 'field can not be empty.')]
    : [];
  const bytes = entries.flat().reduce<number>((sum, text) => sum + Buffer.byteLength(String(text)), 0);
  if (bytes > parameterBytes) errors.push(tooLong(path, parameterBytes));
  return errors;
};
