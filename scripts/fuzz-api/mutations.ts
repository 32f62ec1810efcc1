import type { Json } from '../../test/support/api-verdicts/kinds.ts';
import type { Random } from '../chaos/random.ts';

/** A place in an object: its parent and the key in it. */
export interface Place {
  readonly parent: Json | unknown[];
  readonly key: string | number;
  /** From the object on, such as `spec.accessModes.0`. */
  readonly path: string;
}

/** Texts that some rule may refuse, whatever the field. */
export const texts = [
  '',
  ' ',
  'a',
  'A',
  '0',
  '-',
  '-a',
  'a-',
  '.a',
  'a..b',
  'a_b',
  'a.b.example',
  'Upper.Example',
  'not valid!',
  'ünï.example',
  '日本',
  '💾',
  'line\nbreak',
  'a/b',
  'a/b/c',
  '/a',
  'a/',
  'example.com/key',
  'Example.com/key',
  'example.com/not valid',
  'kubernetes.io/x',
  'storage.k8s.io/x',
  'volume.beta.kubernetes.io/mount-options',
  'volume.beta.kubernetes.io/storage-class',
  'k8s.io',
  '/',
  '//',
  '/a/../b',
  '..',
  '../a',
  '..a',
  './a',
  'relative/path',
  'https://a.blob.core.windows.net/b/c.vhd',
  'x'.repeat(63),
  'x'.repeat(64),
  'X'.repeat(64),
  'x'.repeat(65),
  `${'x'.repeat(60)}.${'y'.repeat(60)}`,
  'x'.repeat(253),
  'x'.repeat(254),
  'x'.repeat(257),
  `${'x'.repeat(63)}/y`,
  `${'x'.repeat(254)}/y`,
  `y/${'x'.repeat(64)}`,
  'é'.repeat(40),
  'é'.repeat(130),
  '0Gi',
  '-1Gi',
  '1.5Gi',
  '1e3',
  '1E400',
  '100m',
  '0.1n',
  '9223372036854775808',
  '99999999999999999999Ei',
  '1 Gi',
  '1gi',
  '5Gi',
  '512Mi',
  '1024Mi',
  '+',
  '-Gi',
  'Gi',
  '.',
  '.5',
  '5.',
  '+1',
  '1e',
  '1E+2',
  '1e3Gi',
  '1K',
  '1u',
  '0x10',
  ' 1Gi',
  '2026-01-01T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-01-01T00:00:00.123+02:00',
  '2026-01-01',
  'iqn.2015-02.example.com',
  'iqn.2015-02.example.com:a',
  'eui.0123456789abcdeg',
  'naa.0123456789abcdef0123456789abcdef',
  'failure-domain.beta.kubernetes.io/zone',
  'iqn.bad',
  'eui.0123456789abcdef',
  'eui.1',
  'naa.0123456789abcdef',
  'naa.xyz',
  'host',
  'host:1',
  '[::1]:1',
  '::1:1',
  'a:b:c',
  'null',
  'true',
] as const;

/** Words of closed lists, each right in one field and wrong in the others. */
export const words = [
  'Retain',
  'Delete',
  'Recycle',
  'retain',
  'ReadWriteOnce',
  'ReadOnlyMany',
  'ReadWriteMany',
  'ReadWriteOncePod',
  'Filesystem',
  'Block',
  'Immediate',
  'WaitForFirstConsumer',
  'In',
  'NotIn',
  'Exists',
  'DoesNotExist',
  'Gt',
  'Lt',
  'Persistent',
  'Ephemeral',
  'File',
  'None',
  'ReadWriteOnceWithFSType',
  'Managed',
  'Dedicated',
  'Shared',
  'ReadWrite',
  'Directory',
  'DirectoryOrCreate',
  'Socket',
  'PersistentVolumeClaim',
  'VolumeSnapshot',
  'snapshot.storage.k8s.io',
  'my.driver.example',
  'gold',
  'silver',
  'growing',
  'fixed',
  'default',
  'metadata.name',
  'metadata.namespace',
  'orphan',
  'foregroundDeletion',
  'kubernetes',
  'Event',
  'v1',
] as const;

const otherMetadata = [
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'managedFields',
] as const;

const numbers = [
  0,
  1,
  -1,
  5,
  9,
  10,
  255,
  256,
  599,
  600,
  1.5,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  2 ** 32 + 1,
  2 ** 53,
  1e19,
  1e30,
];

/** Changes the object in one to three places; it belongs to the caller. @param others - valid objects of the kind. */
export function mutate(object: Json, random: Random, others: readonly Json[]): void {
  const rounds = random.chance(0.7) ? 1 : random.chance(0.7) ? 2 : 3;
  for (let round = 0; round < rounds; round++) {
    if (random.chance(0.08)) graft(object, random, random.pick(others));
    else if (random.chance(0.04)) addMetadata(object, random);
    else mutateSomewhere(object, random);
  }
}

function mutateSomewhere(object: Json, random: Random): void {
  const all = places(object);
  if (all.length > 0) mutatePlace(random.pick(all), random);
}

/** All values inside, but for the kind and its version, which decide where an object is sent. */
export function places(value: unknown, parentPath: readonly (string | number)[] = []): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const parent = value as Json | unknown[];
  const keys = Array.isArray(parent) ? [...parent.keys()] : Object.keys(parent);
  return keys.flatMap((key) => {
    if (parentPath.length === 0 && (key === 'kind' || key === 'apiVersion')) return [];
    const path = [...parentPath, key];
    return [{ parent, key, path: path.join('.') }, ...places((parent as Json)[key], path)];
  });
}

function mutatePlace({ parent, key }: Place, random: Random): void {
  const holder = parent as Json;
  const value = holder[key];
  const kind = random.next();
  if (kind < 0.12) remove(parent, key);
  else if (kind < 0.18) holder[key] = null;
  else if (kind < 0.23) holder[key] = random.pick([wrongType(value, random), [], {}]);
  else if (kind < 0.28 && !Array.isArray(parent)) rename(holder, String(key), random);
  else holder[key] = sameType(value, random);
}

function sameType(value: unknown, random: Random): unknown {
  if (typeof value === 'string') return random.chance(0.65) ? random.pick(texts) : random.pick(words);
  if (typeof value === 'number') return random.pick(numbers);
  if (typeof value === 'boolean') return !value;
  if (Array.isArray(value)) return mutatedList(value as unknown[], random);
  return typeof value === 'object' && value !== null ? mutatedMap({ ...value }, random) : random.pick(texts);
}

function mutatedList(list: unknown[], random: Random): unknown[] {
  const copy = structuredClone(list[0] ?? random.pick(words));
  const added = random.pick([copy, random.pick(words), random.pick(texts), null]);
  return random.pick([[], [...list, added], [...list, copy], list.slice(1), [added]]);
}

function mutatedMap(map: Json, random: Random): Json {
  if (random.chance(0.2)) return {};
  if (random.chance(0.03)) return { ...map, ...manyEntries() };
  if (random.chance(0.03)) return { ...map, long: 'x'.repeat(262_145) };
  return { ...map, [random.pick(texts)]: random.pick([random.pick(texts), random.pick(words), '1Gi']) };
}

function manyEntries(): Json {
  return Object.fromEntries(Array.from({ length: 513 }, (_, index) => [`key-${index}`, 'v']));
}

function wrongType(value: unknown, random: Random): unknown {
  return random.pick(
    [1, 'text', true, ['text'], { key: 'value' }, 1.5].filter((other) => typeof other !== typeof value),
  );
}

export function remove(parent: Json | unknown[], key: string | number): void {
  if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else Reflect.deleteProperty(parent, key);
}

/** The field in another case, or one that no kind has. */
function rename(parent: Json, key: string, random: Random): void {
  const name = random.pick([key.toUpperCase(), key.charAt(0).toUpperCase() + key.slice(1), `${key}x`]);
  parent[name] = parent[key];
  if (random.chance(0.5)) Reflect.deleteProperty(parent, key);
}

/** Takes over a field of another object: a second volume source, a changed class, a field that was never there. */
function graft(object: Json, random: Random, other: Json): void {
  const from = (other['spec'] ?? other) as Json;
  const to = object['spec'] ?? object;
  const fields = Object.keys(from).filter((field) => !['kind', 'apiVersion', 'metadata'].includes(field));
  if (typeof to !== 'object' || fields.length === 0) return;
  const field = random.pick(fields);
  (to as Json)[field] = structuredClone(from[field]);
}

function addMetadata(object: Json, random: Random): void {
  const { metadata } = object;
  if (typeof metadata !== 'object' || metadata === null) return;
  const field = random.pick(otherMetadata);
  (metadata as Json)[field] = random.pick<unknown>([
    random.pick(texts),
    random.pick(words),
    random.pick(numbers),
    null,
  ]);
}
