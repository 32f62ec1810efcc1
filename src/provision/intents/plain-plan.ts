/** Plans are stored as JSON and read back after a crash: what JSON would change is refused at the first attempt. */
import type { Plan } from '../recoverable.ts';

/** An array with more items is checked once: plans share them, and they must not be modified. */
const sharedLength = 100;
const maxDepth = 100;

const checked = new WeakSet<object>();

/** @throws {TypeError} for a plan that JSON does not give back as it is, apart from fields that are undefined: says which value, and where. */
export function checkPlan(plan: unknown): asserts plan is Plan {
  if (isPlainObject(plan)) checkFields(plan, []);
  else throw refusal(plan, []);
}

type Path = readonly (string | number)[];

function check(value: unknown, path: Path): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return;
  if (path.length > maxDepth)
    throw new TypeError('plan() returned an object that contains itself, or has more than 100 levels');
  if (Array.isArray(value)) checkItems(value, path);
  else if (isPlainObject(value)) checkFields(value, path);
  else throw refusal(value, path);
}

function checkItems(items: readonly unknown[], path: Path): void {
  if (checked.has(items)) return;
  for (const [index, item] of items.entries()) check(item, [...path, index]);
  if (items.length > sharedLength) checked.add(items);
}

function checkFields(object: object, path: Path): void {
  for (const [name, value] of Object.entries(object)) {
    if (value !== undefined) check(value, [...path, name]); // JSON drops it, which reads the same
  }
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    (prototype === Object.prototype || prototype === null) &&
    typeof (value as { toJSON?: unknown }).toJSON !== 'function'
  );
}

function refusal(value: unknown, path: Path): TypeError {
  const where = path.length === 0 ? '' : ` at ${JSON.stringify(path.join('.'))}`;
  return new TypeError(
    `plan() returned ${kindOf(value)}${where}: a plan is stored as JSON. It must be a plain object of \
strings, finite numbers, booleans, null, arrays and plain objects`,
  );
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'number') return String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (Array.isArray(value)) return 'an array';
  const { constructor } = value as { constructor?: { name: string } };
  if (constructor === undefined || constructor === Object) return 'an object with a method toJSON, or of no class';
  return `an instance of ${constructor.name || 'a class without a name'}`;
}
