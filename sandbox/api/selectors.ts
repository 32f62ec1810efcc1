import type { SandboxObject } from './client.ts';
import { at } from './json.ts';
import { qualifiedResource, type ResourceType } from './resource-type.ts';
import { StatusError } from './status-error.ts';

/** One term of a field selector. */
interface FieldTerm {
  readonly field: string;
  readonly value: string;
  readonly negated: boolean;
}

/** A parsed field selector. */
interface FieldSelector {
  matches(object: SandboxObject): boolean;
  /** The name asked for by a term `metadata.name=<name>`, which makes the look-up direct. */
  readonly name: string | undefined;
}

const eventReference = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];

/** Selectable fields beyond `metadata.name` and `metadata.namespace`, by qualified resource. */
const fieldsByResource = new Map<string, readonly string[]>([
  [
    'pods',
    [
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'spec.hostNetwork',
      'status.phase',
      'status.podIP',
      'status.podIPs',
      'status.nominatedNodeName',
    ],
  ],
  [
    'events',
    [...eventReference.map((field) => `involvedObject.${field}`), 'reason', 'reportingComponent', 'source', 'type'],
  ],
  [
    'events.events.k8s.io',
    [...eventReference.map((field) => `regarding.${field}`), 'reason', 'reportingController', 'type'],
  ],
  ['nodes', ['spec.unschedulable']],
  ['secrets', ['type']],
  ['namespaces', ['status.phase', 'name']],
  ['persistentvolumes', ['name']],
  ['persistentvolumeclaims', ['name']],
]);

/**
 * Reads a field selector such as `metadata.name=a,status.phase!=Running`; `undefined` for an empty one. An absent
 * field counts as empty text.
 *
 * @throws {StatusError} `BadRequest` for a term it cannot read or a field that the resource does not offer.
 */
export function parseFieldSelector(text: string | undefined, type: ResourceType): FieldSelector | undefined {
  if (text === undefined || text === '') return undefined;
  const supported = fieldsByResource.get(qualifiedResource(type)) ?? [];
  const terms = splitTerms(text).map(parseTerm);
  for (const { field } of terms) {
    if (field !== 'metadata.name' && field !== 'metadata.namespace' && !supported.includes(field)) {
      throw new StatusError('BadRequest', `field label not supported: ${field}`);
    }
  }
  const { fromStored } = type;
  return {
    name: terms.find(({ field, negated }) => field === 'metadata.name' && !negated)?.value,
    matches: (object) => {
      const shown = fromStored === undefined ? object : fromStored(object);
      return terms.every(({ field, value, negated }) => (fieldText(shown, field) === value) !== negated);
    },
  };
}

/** The one name that the field selector of a list or watch asks for, else empty: authorization goes by it. */
export function selectedName(query: URLSearchParams): string {
  try {
    const terms = splitTerms(query.get('fieldSelector') ?? '').map(parseTerm);
    return terms.find(({ field, negated }) => field === 'metadata.name' && !negated)?.value ?? '';
  } catch {
    return ''; // rejected as a bad request once it is known who asks
  }
}

/** The value a selector compares, as text. */
function fieldText(object: SandboxObject, field: string): string {
  if (field === 'name') return object.metadata.name;
  if (field === 'source') return scalarText(at(object, 'source', 'component'));
  if (field === 'spec.unschedulable' || field === 'spec.hostNetwork') {
    return scalarText(at(object, ...field.split('.')) ?? false);
  }
  return scalarText(at(object, ...field.split('.')));
}

function scalarText(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'boolean' || typeof value === 'number' ? String(value) : '';
}

function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let term = '';
  for (let index = 0; index < text.length; index++) {
    const character = text.charAt(index);
    if (character === '\\') term += character + text.charAt(++index);
    else if (character === ',') {
      terms.push(term);
      term = '';
    } else term += character;
  }
  terms.push(term);
  return terms.filter((part) => part !== '');
}

function parseTerm(term: string): FieldTerm {
  const match = /^([^=!\\]+)(!=|==|=)((?:\\[\\,=]|[^\\,=])*)$/.exec(term);
  if (match === null) throw new StatusError('BadRequest', `invalid selector: '${term}'; can't understand '${term}'`);
  const [, field = '', operator, value = ''] = match;
  return { field, value: value.replace(/\\([\\,=])/g, '$1'), negated: operator === '!=' };
}

/** Decides by an object's labels. */
type LabelMatcher = (labels: Readonly<Record<string, string>>) => boolean;

const key = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?`;
const value = String.raw`[A-Za-z0-9._-]*`;
const requirementForms: { form: RegExp; matcher: (match: RegExpExecArray) => LabelMatcher }[] = [
  {
    form: new RegExp(`^(${key})$`),
    matcher:
      ([, name = '']) =>
      (labels) =>
        Object.hasOwn(labels, name),
  },
  {
    form: new RegExp(`^!\\s*(${key})$`),
    matcher:
      ([, name = '']) =>
      (labels) =>
        !Object.hasOwn(labels, name),
  },
  {
    form: new RegExp(`^(${key})\\s*==?\\s*(${value})$`),
    matcher:
      ([, name = '', want]) =>
      (labels) =>
        Object.hasOwn(labels, name) && labels[name] === want,
  },
  {
    form: new RegExp(`^(${key})\\s*!=\\s*(${value})$`),
    matcher:
      ([, name = '', unwanted]) =>
      (labels) =>
        !Object.hasOwn(labels, name) || labels[name] !== unwanted,
  },
  {
    form: new RegExp(`^(${key})\\s+(in|notin)\\s*\\(([^()]*)\\)$`),
    matcher: ([, name = '', operator, list = '']) => {
      const wanted = new Set(list.split(',').map((item) => item.trim()));
      return operator === 'in'
        ? (labels) => Object.hasOwn(labels, name) && wanted.has(labels[name] ?? '')
        : (labels) => !Object.hasOwn(labels, name) || !wanted.has(labels[name] ?? '');
    },
  },
  {
    form: new RegExp(`^(${key})\\s*([<>])\\s*(-?\\d+)$`),
    matcher:
      ([, name = '', operator, bound]) =>
      (labels) => {
        const text = labels[name];
        if (text === undefined || !/^-?\d+$/.test(text)) return false;
        return operator === '>' ? Number(text) > Number(bound) : Number(text) < Number(bound);
      },
  },
];

/**
 * Reads a label selector as it stands in a query, such as `a=b,c in (d,e),!f`; `undefined` for an empty one, which
 * matches everything (Kubernetes, "Labels and Selectors").
 *
 * @throws {StatusError} `BadRequest` for what it cannot read.
 */
export function parseLabelSelector(text: string | undefined): LabelMatcher | undefined {
  if (text === undefined || text.trim() === '') return undefined;
  const matchers = splitOutsideParentheses(text).map((part) => requirement(part.trim(), text));
  return (labels) => matchers.every((matches) => matches(labels));
}

function requirement(part: string, text: string): LabelMatcher {
  for (const { form, matcher } of requirementForms) {
    const match = form.exec(part);
    if (match !== null) return matcher(match);
  }
  throw new StatusError('BadRequest', `unable to parse requirement: found '${part}' in label selector '${text}'`);
}

function splitOutsideParentheses(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === '(') depth++;
    else if (character === ')') depth--;
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
