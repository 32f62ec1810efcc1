import { type Check, duplicate, type FieldError, forbidden, invalid, required } from './field-error.ts';
import { arrayAt, isObject, jsonEqual, objectAt, stringAt, stringsAt } from './json.ts';
import { labelValueProblem, qualifiedNameProblem, subdomainProblem } from './names.ts';

/** Requirements of a selector: how many values an operator takes, `any` for one or more. */
type Operators = Readonly<Record<string, 'any' | 0 | 1>>;

const labelOperators: Operators = { In: 'any', NotIn: 'any', Exists: 0, DoesNotExist: 0 };
const nodeOperators: Operators = { ...labelOperators, Gt: 1, Lt: 1 };
const nodeFieldOperators: Operators = { In: 1, NotIn: 1 };

/** A label selector. @param anyValue - values need not be label values, since an older object has such ones. */
export function labelSelector(anyValue = false): Check {
  return (selector, path) => [
    ...labelErrors(objectAt(selector, 'matchLabels'), `${path}.matchLabels`),
    ...requirements(selector, 'matchExpressions', path).flatMap(([requirement, at]) =>
      labelRequirementErrors(requirement, at, labelOperators, anyValue),
    ),
  ];
}

/** A node selector. @param anyValue - as of `labelSelector`. */
export function nodeSelector(anyValue = false): Check {
  return (selector, path) => {
    const terms = arrayAt(selector, 'nodeSelectorTerms');
    if (terms.length === 0) return [required(`${path}.nodeSelectorTerms`, 'must have at least one node selector term')];
    return terms.flatMap((term, index) => nodeTermErrors(term, `${path}.nodeSelectorTerms[${index}]`, anyValue));
  };
}

/** Labels, with keys and values. */
export function labelErrors(labels: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => {
    const problems = [
      [key, qualifiedNameProblem(key)],
      [value, labelValueProblem(String(value))],
    ] as const;
    return problems.filter(([, why]) => why !== '').map(([what, why]) => invalid(path, what, why));
  });
}

/** The topologies of a class: no key twice in a term, no term twice. */
export const topologies: Check = (terms, path) => {
  const seen: unknown[] = [{}]; // a term without expressions is always a repetition
  return arrayAt({ terms }, 'terms').flatMap((term, index) => {
    const at = `${path}[${index}]`;
    const errors = topologyTermErrors(term, at);
    const values = topologyValues(term);
    if (seen.some((other) => jsonEqual(other, values))) errors.push(duplicate(`${at}.matchLabelExpressions`, ''));
    seen.push(values);
    return errors;
  });
};

function nodeTermErrors(term: unknown, path: string, anyValue: boolean): FieldError[] {
  return [
    ...requirements(term, 'matchExpressions', path).flatMap(([requirement, at]) =>
      labelRequirementErrors(requirement, at, nodeOperators, anyValue),
    ),
    ...requirements(term, 'matchFields', path).flatMap(([requirement, at]) => nodeFieldErrors(requirement, at)),
  ];
}

function labelRequirementErrors(
  requirement: unknown,
  path: string,
  operators: Operators,
  anyValue: boolean,
): FieldError[] {
  const key = stringAt(requirement, 'key');
  const problem = qualifiedNameProblem(key);
  return [
    ...operatorErrors(requirement, path, operators),
    ...(problem === '' ? [] : [invalid(`${path}.key`, key, problem)]),
    ...(anyValue ? [] : valueErrors(requirement, path, labelValueProblem)),
  ];
}

function nodeFieldErrors(requirement: unknown, path: string): FieldError[] {
  const key = stringAt(requirement, 'key');
  return [
    ...operatorErrors(requirement, path, nodeFieldOperators),
    ...(key === 'metadata.name'
      ? valueErrors(requirement, path, subdomainProblem)
      : [invalid(`${path}.key`, key, 'not a valid field selector key')]),
  ];
}

function operatorErrors(requirement: unknown, path: string, operators: Operators): FieldError[] {
  const operator = stringAt(requirement, 'operator');
  const wanted = Object.hasOwn(operators, operator) ? operators[operator] : undefined;
  if (wanted === undefined) return [invalid(`${path}.operator`, operator, 'not a valid selector operator')];
  const count = arrayAt(requirement, 'values').length;
  if (wanted === 0) return count === 0 ? [] : [forbidden(`${path}.values`, `may not be specified with ${operator}`)];
  const enough = wanted === 1 ? count === 1 : count > 0;
  return enough ? [] : [required(`${path}.values`, `must be specified with ${operator}`)];
}

function valueErrors(requirement: unknown, path: string, problem: (value: string) => string): FieldError[] {
  return stringsAt(requirement, 'values').flatMap((value, index) => {
    const why = problem(value);
    return why === '' ? [] : [invalid(`${path}.values[${index}]`, value, why)];
  });
}

function topologyTermErrors(term: unknown, path: string): FieldError[] {
  const keys = new Set<string>();
  return requirements(term, 'matchLabelExpressions', path).flatMap(([requirement, at]) => {
    const key = stringAt(requirement, 'key');
    const problem = qualifiedNameProblem(key);
    const errors = topologyValueErrors(stringsAt(requirement, 'values'), `${at}.values`);
    if (problem !== '') errors.push(invalid(`${at}.key`, key, problem));
    if (keys.has(key)) errors.push(duplicate(`${at}.key`, key));
    keys.add(key);
    return errors;
  });
}

function topologyValueErrors(values: readonly string[], path: string): FieldError[] {
  if (values.length === 0) return [required(path)];
  return values.flatMap((value, index) =>
    values.indexOf(value) < index ? [duplicate(`${path}[${index}]`, value)] : [],
  );
}

/** What a term means, whatever the order of its keys and values. */
function topologyValues(term: unknown): Record<string, string[]> {
  return Object.fromEntries(
    arrayAt(term, 'matchLabelExpressions').map((requirement) => [
      stringAt(requirement, 'key'),
      [...new Set(stringsAt(requirement, 'values'))].toSorted(),
    ]),
  );
}

function requirements(holder: unknown, field: string, path: string): [requirement: unknown, path: string][] {
  return arrayAt(holder, field)
    .filter((item) => isObject(item))
    .map((item, index) => [item, `${path}.${field}[${index}]`]);
}
