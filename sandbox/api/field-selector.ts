import type { SandboxObject } from './client.ts';
import { at } from './json.ts';
import { qualifiedResource } from './resource-type.ts';
import type { ResourceType } from './resource-type.ts';
import { StatusError } from './status-error.ts';

/** One term of a field selector. */
interface FieldTerm {
  readonly field: string;
  readonly value: string;
  readonly negated: boolean;
}

/** A parsed field selector. */
export interface FieldSelector {
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
