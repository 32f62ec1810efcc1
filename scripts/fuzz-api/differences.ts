import type { ApiUnderComparison, Verdict } from '../../test/support/api-verdicts/api-under-comparison.ts';
import type { Json, WriteCase } from '../../test/support/api-verdicts/kinds.ts';

/** A write that the two APIs judge differently. */
export interface Difference {
  readonly write: WriteCase;
  readonly sandbox: Verdict;
  readonly kubernetes: Verdict;
}

/** Both verdicts, if they differ. */
export type Compare = (write: WriteCase) => Promise<Difference | undefined>;

/** A comparison of two APIs that have the same objects. */
export function comparison(sandbox: ApiUnderComparison, kubernetes: ApiUnderComparison): Compare {
  return async (write) => {
    const [ours, theirs] = await Promise.all([sandbox.judge(write), kubernetes.judge(write)]);
    return sameVerdict(ours, theirs) ? undefined : { write, sandbox: ours, kubernetes: theirs };
  };
}

function sameVerdict(a: Verdict, b: Verdict): boolean {
  return a.verdict === b.verdict && a.fields.join() === b.fields.join();
}

/** Fields that only one of the two names, without indexes; the same for all differences with one cause. */
export function fieldsApart({ sandbox, kubernetes }: Difference): string {
  const apart = [
    ...kubernetes.fields.filter((field) => !sandbox.fields.includes(field)),
    ...sandbox.fields.filter((field) => !kubernetes.fields.includes(field)).map((field) => `(not) ${field}`),
  ];
  return [...new Set(apart.map(withoutKeys))].join(', ');
}

function withoutKeys(field: string): string {
  return field.replaceAll(/\[\d+\]/g, '[]').replaceAll(/\[[^\]]+\]/g, '[key]');
}

/** What two differences have in common if they are one and the same. */
export function groupOf(difference: Difference): string[] {
  const { write, sandbox, kubernetes } = difference;
  const verdicts = [sandbox.verdict, kubernetes.verdict];
  return [write.kind, write.replaces === undefined ? 'create' : 'update', fieldsApart(difference), ...verdicts];
}

/** The difference with all fields taken away that it does not need. */
export async function minimal(difference: Difference, compare: Compare): Promise<Difference> {
  const group = groupOf(difference).join('|');
  let smallest = difference;
  for (let position = 0; ; position++) {
    const smaller = without(smallest.write.object, position);
    if (smaller === undefined) return smallest;
    const found = await compare({ ...smallest.write, object: smaller });
    if (found === undefined || groupOf(found).join('|') !== group) continue;
    smallest = found;
    position--;
  }
}

/** A copy without the value at that position in the order of reading; undefined after the last one. */
function without(object: Json, position: number): Json | undefined {
  const copy = structuredClone(object);
  return removeAt(copy, { left: position }) ? copy : undefined;
}

function removeAt(value: unknown, counter: { left: number }): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const holder = value as Json;
  return Object.keys(holder).some((key) => {
    if (counter.left-- > 0) return removeAt(holder[key], counter);
    if (Array.isArray(value)) value.splice(Number(key), 1);
    else Reflect.deleteProperty(holder, key);
    return true;
  });
}
