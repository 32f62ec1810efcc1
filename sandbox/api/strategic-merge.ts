import { isObject, type JsonObject, setField } from './json.ts';
import { StatusError } from './status-error.ts';

const orderPrefix = '$setElementOrder/';
const deletePrefix = '$deleteFromPrimitiveList/';

/**
 * Applies a strategic merge patch to an object of a built-in kind; the arguments stay as they are (Kubernetes,
 * "Update API Objects in Place Using kubectl patch").
 *
 * @throws {StatusError} `BadRequest` for an unknown directive or one that does not fit its place.
 */
export function strategicMerge(target: JsonObject, patch: JsonObject, kind: string): JsonObject {
  return mergeMap(target, patch, kind, '') ?? {};
}

/** Returns `undefined` if the patch deletes the map. */
function mergeMap(target: JsonObject, patch: JsonObject, kind: string, path: string): JsonObject | undefined {
  const directive = patch['$patch'];
  if (directive === 'delete') return undefined;
  if (directive !== undefined && directive !== 'replace' && directive !== 'merge') throw unknownDirective(directive);
  let result: JsonObject = directive === 'replace' ? {} : { ...target };
  const retained = patch['$retainKeys'];
  if (Array.isArray(retained)) {
    result = Object.fromEntries(Object.entries(result).filter(([field]) => retained.includes(field)));
  }
  for (const [field, value] of Object.entries(patch)) {
    if (field === '$patch' || field === '$retainKeys' || field.startsWith(orderPrefix)) continue;
    if (field.startsWith(deletePrefix)) removePrimitives(result, field.slice(deletePrefix.length), value);
    else if (field.startsWith('$')) throw unknownDirective(field);
    else mergeField(result, field, value, { kind, path: path === '' ? field : `${path}.${field}` });
  }
  for (const [directiveName, order] of Object.entries(patch)) {
    if (!directiveName.startsWith(orderPrefix)) continue;
    const field = directiveName.slice(orderPrefix.length);
    const fieldPath = path === '' ? field : `${path}.${field}`;
    const current = result[field];
    if (Array.isArray(current) && Array.isArray(order)) {
      const before = Array.isArray(target[field]) ? (target[field] as unknown[]) : [];
      const identify = identity(listMerge(kind, fieldPath));
      result[field] = inOrder(current, order.map(identify), before, identify);
    }
  }
  return result;
}

function mergeField(result: JsonObject, field: string, value: unknown, at: { kind: string; path: string }): void {
  const current = Object.hasOwn(result, field) ? result[field] : undefined;
  if (value === null) Reflect.deleteProperty(result, field);
  else if (Array.isArray(value))
    result[field] = mergeList(Array.isArray(current) ? current : [], value, at.kind, at.path);
  else if (isObject(value)) {
    const merged = mergeMap(isObject(current) ? current : {}, value, at.kind, at.path);
    if (merged === undefined) Reflect.deleteProperty(result, field);
    else setField(result, field, merged);
  } else setField(result, field, value);
}

function mergeList(target: unknown[], patch: unknown[], kind: string, path: string): unknown[] {
  const how = listMerge(kind, path);
  if (how.by === 'whole') return patch.map((item) => withoutDirectives(item, kind, path));
  const identify = identity(how);
  if (how.by === 'value') {
    const merged = [...target, ...patch.filter((item) => !target.includes(item))];
    return inOrder(merged, patch.map(identify), target, identify);
  }
  const replaces = patch.some((item) => isObject(item) && item['$patch'] === 'replace');
  const result = replaces ? [] : [...target];
  for (const item of patch) {
    if (!isObject(item)) throw new StatusError('BadRequest', `${path}: list elements must be objects`);
    if (item['$patch'] === 'replace' && item[how.key] === undefined) continue;
    const id = item[how.key];
    if (id === undefined) {
      throw new StatusError(
        'BadRequest',
        `map: ${JSON.stringify(item)} does not contain declared merge key: ${how.key}`,
      );
    }
    const index = result.findIndex((each) => isObject(each) && each[how.key] === id);
    const merged = mergeMap(index === -1 ? {} : (result[index] as JsonObject), item, kind, path);
    if (merged === undefined) {
      if (index !== -1) result.splice(index, 1);
    } else if (index === -1) result.push(merged);
    else result[index] = merged;
  }
  return inOrder(result, patch.map(identify), target, identify);
}

function withoutDirectives(item: unknown, kind: string, path: string): unknown {
  return isObject(item) ? (mergeMap({}, item, kind, path) ?? {}) : item;
}

function removePrimitives(result: JsonObject, field: string, unwanted: unknown): void {
  const current = result[field];
  if (!Array.isArray(unwanted)) throw unknownDirective(`${deletePrefix}${field}`);
  if (Array.isArray(current)) result[field] = current.filter((item) => !unwanted.includes(item));
}

function identity(how: ListMerge): (item: unknown) => unknown {
  return how.by === 'key' ? (item) => (isObject(item) ? item[how.key] : item) : (item) => item;
}

/**
 * Orders the items the patch speaks of as it says; the others keep their place relative to the old list, and what is
 * new comes before them.
 */
function inOrder(
  items: unknown[],
  wanted: unknown[],
  before: unknown[],
  identify: (item: unknown) => unknown,
): unknown[] {
  const old = before.map(identify);
  const spoken = items
    .filter((item) => wanted.includes(identify(item)))
    .sort((a, b) => wanted.indexOf(identify(a)) - wanted.indexOf(identify(b)));
  const others = items.filter((item) => !wanted.includes(identify(item)));
  const result: unknown[] = [];
  while (spoken.length > 0 && others.length > 0) {
    const [left, right] = [old.indexOf(identify(spoken[0])), old.indexOf(identify(others[0]))];
    result.push(left === -1 || (right !== -1 && left < right) ? spoken.shift() : others.shift());
  }
  return [...result, ...spoken, ...others];
}

function unknownDirective(directive: unknown): StatusError {
  return new StatusError('BadRequest', `unrecognized strategic merge patch directive: ${String(directive)}`);
}

/** How a list merges: element by element under a key, as a set of primitives, or as a whole. */
type ListMerge =
  { readonly by: 'key'; readonly key: string } | { readonly by: 'value' } | { readonly by: 'whole' };

const keys = new Map<string, string>([
  ['containers', 'name'],
  ['initContainers', 'name'],
  ['ephemeralContainers', 'name'],
  ['volumes', 'name'],
  ['env', 'name'],
  ['imagePullSecrets', 'name'],
  ['schedulingGates', 'name'],
  ['resourceClaims', 'name'],
  ['volumeMounts', 'mountPath'],
  ['volumeDevices', 'devicePath'],
  ['ports', 'containerPort'],
  ['conditions', 'type'],
  ['ownerReferences', 'uid'],
  ['hostAliases', 'ip'],
  ['podIPs', 'ip'],
  ['topologySpreadConstraints', 'topologyKey'],
  ['Service ports', 'port'],
  ['ServiceAccount secrets', 'name'],
  ['CSINode drivers', 'name'],
  ['Node addresses', 'type'],
]);
const sets = new Set(['metadata.finalizers', 'spec.podCIDRs']);

/** How the list `field` of a built-in kind merges; `path` is its path without indexes. */
export function listMerge(kind: string, path: string): ListMerge {
  if (sets.has(path)) return { by: 'value' };
  const field = path.slice(path.lastIndexOf('.') + 1);
  const key = keys.get(`${kind} ${field}`) ?? keys.get(field);
  return key === undefined ? { by: 'whole' } : { by: 'key', key };
}
