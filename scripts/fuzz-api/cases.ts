import { type ComparedKind, type Json, type WriteCase } from '../../test/support/api-verdicts/kinds.ts';
import { type StoredObject, storedObjects } from '../../test/support/api-verdicts/stored-objects.ts';
import { Random } from '../chaos/random.ts';
import { mutate } from './mutations.ts';

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
