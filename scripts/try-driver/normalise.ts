/** Takes out of observations what differs between any two runs: ids, times, and names that were made from them. */

/** Texts of one run and what stands for them in the comparison. */
export type Names = ReadonlyMap<string, string>;

/** Fields of an object's metadata that no client chooses. */
const serverFields = new Set([
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
  'generation',
  'selfLink',
]);
const uuid = /(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])/g;
const time = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
/** Milliseconds, a random number, and the driver's name: of `storage.kubernetes.io/csiProvisionerIdentity`. */
const identity = /\b\d{13}-\d{1,5}-(?=[a-z])/g;
/** A shorter name is replaced only where it is the whole text: a volume handle may be `4`. */
const leastPart = 8;

/** An object without what the server set, with the run's own names replaced. */
export function normalised(value: unknown, names: Names): unknown {
  if (typeof value === 'string') return normalisedText(value, names);
  if (Array.isArray(value)) return value.map((each) => normalised(each, names));
  if (value instanceof Date) return '<time>';
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key, each]) => each !== undefined && !serverFields.has(key));
  const renamed = entries.map(([key, each]): [string, unknown] => [
    normalisedText(key, names),
    normalised(each, names),
  ]);
  return Object.fromEntries(renamed.sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function normalisedText(text: string, names: Names): string {
  const whole = names.get(text);
  if (whole !== undefined) return whole;
  let result = text;
  for (const [name, placeholder] of longestFirst(names))
    if (name.length >= leastPart) result = result.replaceAll(name, placeholder);
  return result.replaceAll(identity, '<identity>-').replaceAll(uuid, '<uuid>').replaceAll(time, '<time>');
}

function longestFirst(names: Names): [string, string][] {
  return [...names].sort(([a], [b]) => b.length - a.length);
}
