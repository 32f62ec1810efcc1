import { copyJson, isObject, jsonEqual, type JsonObject, setField } from './json.ts';
import { listMerge } from './strategic-merge.ts';
import { StatusError } from './status-error.ts';

/** A step of a path: a field, an element of a keyed list, or an element of a set. */
type Step = string | { readonly key: string; readonly id: unknown } | { readonly value: unknown };

interface Leaf {
  readonly steps: readonly Step[];
  readonly value: unknown;
}

/** Which manager applied which leaves of one object, as far as we remember: by manager, then by path. */
export type Owners = ReadonlyMap<string, ReadonlyMap<string, readonly Step[]>>;

/** An apply request against an object. */
export interface ApplyRequest {
  readonly kind: string;
  readonly apiVersion: string;
  readonly live: JsonObject;
  readonly config: JsonObject;
  readonly manager: string;
  readonly force: boolean;
  readonly owners: Owners;
}

/**
 * Merges an applied configuration into the live object with a reduced model of ownership: leaves that this
 * manager applied before and that nobody else applied go when they are missing now; only applied leaves are owned.
 *
 * @throws {StatusError} `Conflict` if another manager applied another value, unless forced.
 */
export function applyConfiguration(request: ApplyRequest): { object: JsonObject; owners: Owners } {
  const { kind, live, config, manager, force } = request;
  const leaves = new Map<string, Leaf>();
  collectLeaves(config, kind, [], '', leaves);
  const owners = new Map([...request.owners].map(([name, paths]) => [name, new Map(paths)]));
  const conflicts: { manager: string; leaf: Leaf }[] = [];
  for (const [path, leaf] of leaves) {
    for (const [name, paths] of owners) {
      if (name === manager || !paths.has(path)) continue;
      const current = readSteps(live, leaf.steps);
      if (jsonEqual(current, leaf.value) || (isObject(current) && isObject(leaf.value))) continue;
      if (force) paths.delete(path);
      else conflicts.push({ manager: name, leaf });
    }
  }
  if (conflicts.length > 0) throw conflictError(conflicts, request.apiVersion);
  const object = copyJson(live);
  for (const [path, steps] of owners.get(manager) ?? []) {
    const shared = [...owners].some(([name, paths]) => name !== manager && paths.has(path));
    // An empty map that was applied may hold fields of others by now.
    if (!leaves.has(path) && !shared && !hasFields(readSteps(object, steps))) removeSteps(object, steps);
  }
  for (const { steps, value } of leaves.values()) {
    if (isObject(value) && isObject(readSteps(object, steps))) continue; // empty, and there already
    writeSteps(object, steps, copyJson(value));
  }
  owners.set(manager, new Map([...leaves].map(([path, { steps }]) => [path, steps])));
  return { object, owners };
}

const notOwned = new Set([
  'apiVersion',
  'kind',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'metadata.resourceVersion',
]);

function collectLeaves(value: unknown, kind: string, steps: Step[], path: string, into: Map<string, Leaf>): void {
  if (isObject(value) && (Object.keys(value).length > 0 || steps.length === 0)) {
    for (const [field, part] of Object.entries(value)) {
      const fieldPath = path === '' ? field : `${path}.${field}`;
      if (!notOwned.has(fieldPath)) collectLeaves(part, kind, [...steps, field], fieldPath, into);
    }
    return;
  }
  const how = Array.isArray(value) ? listMerge(kind, path) : { by: 'whole' as const };
  if (Array.isArray(value) && how.by === 'key') {
    for (const item of value) {
      const id = isObject(item) ? item[how.key] : undefined;
      collectLeaves(item, kind, [...steps, { key: how.key, id }], path, into);
    }
  } else if (Array.isArray(value) && how.by === 'value') {
    for (const item of value) {
      const itemSteps = [...steps, { value: item as unknown }];
      into.set(JSON.stringify(itemSteps), { steps: itemSteps, value: item });
    }
  } else into.set(JSON.stringify(steps), { steps, value });
}

function hasFields(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length > 0;
}

function readSteps(object: unknown, steps: readonly Step[]): unknown {
  let current = object;
  for (const step of steps) current = child(current, step);
  return current;
}

function child(parent: unknown, step: Step): unknown {
  if (typeof step === 'string') return isObject(parent) ? parent[step] : undefined;
  if (!Array.isArray(parent)) return undefined;
  if ('value' in step) return parent.includes(step.value) ? step.value : undefined;
  return parent.find((item) => isObject(item) && item[step.key] === step.id) as unknown;
}

function writeSteps(object: JsonObject, steps: readonly Step[], value: unknown): void {
  let parent: unknown = object;
  for (const [index, step] of steps.entries()) {
    const last = index === steps.length - 1;
    const next = steps[index + 1];
    const empty = (): unknown => (typeof next === 'string' ? {} : []);
    if (typeof step === 'string' && isObject(parent)) {
      if (last) {
        setField(parent, step, value);
        return;
      }
      if (child(parent, step) === undefined) setField(parent, step, empty());
    } else if (typeof step !== 'string' && Array.isArray(parent)) {
      if ('value' in step) {
        if (!parent.includes(step.value)) parent.push(step.value);
        return;
      }
      if (child(parent, step) === undefined) parent.push({ [step.key]: step.id });
    }
    parent = child(parent, step);
  }
}

function removeSteps(object: JsonObject, steps: readonly Step[]): void {
  const [before, last] = [steps.at(-2), steps.at(-1)];
  // Whoever gives up the key of a list element gives up the element.
  if (typeof before === 'object' && 'key' in before && before.key === last) {
    removeSteps(object, steps.slice(0, -1));
    return;
  }
  const parent = readSteps(object, steps.slice(0, -1));
  if (typeof last === 'string' && isObject(parent)) Reflect.deleteProperty(parent, last);
  else if (typeof last === 'object' && Array.isArray(parent)) {
    const index = parent.indexOf(child(parent, last));
    if (index !== -1) parent.splice(index, 1);
  }
}

function shownPath(steps: readonly Step[]): string {
  return steps
    .map((step) => {
      if (typeof step === 'string') return `.${step}`;
      return 'value' in step ? `[=${JSON.stringify(step.value)}]` : `[${step.key}=${JSON.stringify(step.id)}]`;
    })
    .join('');
}

function conflictError(conflicts: { manager: string; leaf: Leaf }[], apiVersion: string): StatusError {
  const texts = conflicts.map(({ manager }) => `conflict with ${JSON.stringify(manager)} using ${apiVersion}`);
  const [first = '', paths] = [texts[0], conflicts.map(({ leaf }) => shownPath(leaf.steps))];
  const single = conflicts.length === 1;
  const message = single
    ? `Apply failed with 1 conflict: ${first}: ${paths[0] ?? ''}`
    : `Apply failed with ${conflicts.length} conflicts: ${texts.map((text, index) => `${text}: ${paths[index] ?? ''}`).join('\n')}`;
  return new StatusError('Conflict', message, {
    details: {
      causes: conflicts.map(({ leaf }, index) => ({
        reason: 'FieldManagerConflict',
        message: texts[index] ?? '',
        field: shownPath(leaf.steps),
      })),
    },
  });
}
