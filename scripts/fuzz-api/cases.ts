import type { ComparedKind, Json, WriteCase } from '../../test/support/api-verdicts/kinds.ts';
import { type StoredObject, storedObjects } from '../../test/support/api-verdicts/stored-objects.ts';
import { Random } from '../chaos/random.ts';
import { mutate, type Place, places, remove, texts, words } from './mutations.ts';

/** As many mutated writes as asked for: the same for the same seed, kinds and count. */
export function* writeCases(options: {
  kinds: readonly ComparedKind[];
  cases: number;
  seed: string;
}): Generator<WriteCase> {
  const random = new Random(options.seed);
  const valid = storedObjects().filter(({ kind }) => options.kinds.includes(kind));
  for (let number = 0; number < options.cases; number++) {
    const kind = options.kinds[number % options.kinds.length]!;
    yield writeCase(
      random,
      valid.filter((each) => each.kind === kind),
    );
  }
}

/** A status is ignored by these writes, but it must have the right types. */
const statuses: Partial<Record<ComparedKind, Json>> = {
  PersistentVolume: {
    phase: 'Bound',
    message: 'text',
    reason: 'text',
    lastPhaseTransitionTime: '2026-01-01T00:00:00Z',
  },
  PersistentVolumeClaim: {
    phase: 'Bound',
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    conditions: [{ type: 'Resizing', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z', message: 'text' }],
    allocatedResources: { storage: '1Gi' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
    currentVolumeAttributesClassName: 'gold',
    modifyVolumeStatus: { targetVolumeAttributesClassName: 'gold', status: 'Pending' },
  },
};

function writeCase(random: Random, valid: readonly StoredObject[]): WriteCase {
  const { kind, name, object } = random.pick(valid);
  const copy = structuredClone(object);
  const update = random.chance(0.4);
  const metadata = copy['metadata'] as Json;
  if (update) metadata['resourceVersion'] = 'current';
  else metadata['name'] = 'new';
  const status = statuses[kind];
  if (status !== undefined && random.chance(0.15)) copy['status'] = structuredClone(status);
  mutate(
    copy,
    random,
    valid.map((each) => each.object),
  );
  const strict = random.chance(0.2);
  return { kind, ...(update ? { replaces: name } : {}), ...(strict ? { strict } : {}), object: copy };
}

/**
 * Every field of the valid objects by itself: removed, null, empty and of another type, and the texts as every text of
 * the list. A field that several objects of a kind have with the same value is changed in the first of them.
 */
export function* everyField(kinds: readonly string[]): Generator<WriteCase> {
  const seen = new Set<string>();
  for (const stored of storedObjects().filter(({ kind }) => kinds.includes(kind))) {
    for (const [position, { value, path }] of fields(stored.object).entries()) {
      const field = JSON.stringify([stored.kind, path, value]);
      if (seen.has(field)) continue;
      seen.add(field);
      for (const change of changes(value)) yield* bothWrites(stored, position, change);
    }
  }
}

type Change = (place: Place) => void;

function fields(object: Json): { value: unknown; path: string }[] {
  return places(object).map(({ parent, key, path }) => ({ value: (parent as Json)[key], path }));
}

function changes(value: unknown): Change[] {
  const others = [null, '', {}, [], 0, true, 'text', ['text'], { key: 'value' }];
  const values = typeof value === 'string' ? [...others, ...texts, ...words] : [...others, ...numbersFor(value)];
  return [({ parent, key }) => remove(parent, key), ...values.map((other) => setTo(other))];
}

function numbersFor(value: unknown): number[] {
  return typeof value === 'number' ? [-1, 1, 256, 599, 2 ** 31, 2 ** 32, 2 ** 53, 1.5] : [];
}

function setTo(value: unknown): Change {
  return ({ parent, key }) => {
    (parent as Json)[key] = structuredClone(value);
  };
}

/** The changed object as a new one, and in place of the valid one. */
function* bothWrites({ kind, name, object }: StoredObject, position: number, change: Change): Generator<WriteCase> {
  for (const update of [false, true]) {
    const copy = structuredClone(object);
    const metadata = copy['metadata'] as Json;
    if (!update) metadata['name'] = 'new';
    change(places(copy)[position]!);
    if (update && copy['metadata'] === metadata) metadata['resourceVersion'] = 'current';
    yield { kind, ...(update ? { replaces: name } : {}), object: copy };
  }
}
