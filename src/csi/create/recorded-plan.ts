/** Plans that were read from the cluster: they may be of another version, or edited by hand. */
import type { Plan } from '../../provision/recoverable.ts';
import { ProvisionError } from '../../provision/provisioner.ts';
import type { VolumePlan } from './volume-plan.ts';
import { secretKinds } from '../secrets/secret-reference.ts';
import { knownAccessModes } from './validate-claim.ts';

/** Throws for a value that is not what it should be; `field` is its path. */
type Check = (value: unknown, field: string) => void;
type Checks = Readonly<Record<string, Check>>;

/**
 * The plan as it was made. What this version does not know is refused rather than left out: the request must be the same
 * as the first one, or it finds another volume.
 *
 * @throws {ProvisionError} state `no-change`, evidence `undecidable`, naming the first field that is not as it should be.
 */
export function recordedPlan(plan: Plan, driverName: string): VolumePlan {
  checkPlan(plan, '');
  const volumePlan = plan as VolumePlan;
  if (volumePlan.driverName !== driverName) fail('driverName', volumePlan.driverName, `the driver "${driverName}"`);
  const { topology } = volumePlan;
  if (topology !== undefined && topology.first >= Math.max(topology.requisite.length, 1)) {
    fail('topology.first', topology.first, 'the index of a requisite topology');
  }
  return volumePlan;
}

function fail(field: string, value: unknown, expected: string): never {
  const shown = value === undefined ? 'missing' : JSON.stringify(value).slice(0, 80);
  throw new ProvisionError(
    `the recorded plan of the volume cannot be used: field ${field === '' ? 'plan' : field} should be ${expected}, ` +
      `but is ${shown}. It was edited, or recorded by another version: run that version, or discard the record`,
    { state: 'no-change', afterUnclear: 'undecidable' },
  );
}

function ofType(type: 'string' | 'boolean'): Check {
  return (value, field) => {
    if (typeof value !== type) fail(field, value, `a ${type}`);
  };
}

const text = ofType('string');
const flag = ofType('boolean');

const filled: Check = (value, field) => {
  if (typeof value !== 'string' || value === '') fail(field, value, 'a string that is not empty');
};

const bytes: Check = (value, field) => {
  if (typeof value !== 'string' || !/^\d{1,19}$/.test(value)) fail(field, value, 'a number of bytes in a string');
};

const index: Check = (value, field) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) fail(field, value, 'an index');
};

function oneOf(...values: readonly string[]): Check {
  return (value, field) => {
    if (!values.includes(value as string)) fail(field, value, `one of ${values.join(', ')}`);
  };
}

function listOf(each: Check): Check {
  return (value, field) => {
    if (!Array.isArray(value)) return fail(field, value, 'a list');
    for (const [position, item] of (value as unknown[]).entries()) each(item, `${field}[${position}]`);
  };
}

function entriesOf(value: unknown, field: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fail(field, value, 'an object');
  return Object.entries(value);
}

const texts: Check = (value, field) => {
  for (const [key, each] of entriesOf(value, field)) text(each, `${field}.${key}`);
};

/** An object with these fields and no others. */
function object(required: Checks, optional: Checks = {}): Check {
  return (value, field) => {
    const given = new Map(entriesOf(value, field));
    const path = (key: string): string => (field === '' ? key : `${field}.${key}`);
    for (const [key, check] of Object.entries(required)) check(given.get(key), path(key));
    for (const [key, each] of given) {
      if (Object.hasOwn(required, key)) continue;
      if (Object.hasOwn(optional, key)) optional[key]?.(each, path(key));
      else fail(path(key), each, 'absent in this version');
    }
  };
}

/** An object with exactly one of these fields, or with none. */
function eitherOf(fields: Checks): Check {
  const check = object({}, fields);
  return (value, field) => {
    check(value, field);
    if (Object.keys(value as object).length > 1) fail(field, value, `an object with one field`);
  };
}

const source = { namespace: filled, name: filled };
const snapshotSource = object({ handling: oneOf('snapshot'), ...source });
const cloneSource = object({ handling: oneOf('clone'), ...source, uid: text });

const capability = object(
  { access_mode: object({ mode: oneOf(...knownAccessModes) }) },
  { mount: object({ fs_type: text, mount_flags: listOf(text) }), block: object({}) },
);

const reference = object({ name: filled, namespace: filled });

const checkPlan = object(
  {
    driverName: filled,
    claim: object({ namespace: text, name: filled, uid: filled }),
    request: object(
      { name: filled, capacity_range: object({ required_bytes: bytes }), volume_capabilities: listOf(capability) },
      {
        parameters: texts,
        mutable_parameters: texts,
        volume_content_source: eitherOf({
          snapshot: object({ snapshot_id: text }),
          volume: object({ volume_id: text }),
        }),
      },
    ),
    secretReferences: object({}, Object.fromEntries(Object.keys(secretKinds).map((kind) => [kind, reference]))),
    migrated: flag,
    topologySupported: flag,
    mayReschedule: flag,
    fsType: text,
    spec: object(
      {},
      {
        accessModes: listOf(text),
        mountOptions: listOf(text),
        persistentVolumeReclaimPolicy: text,
        volumeAttributesClassName: text,
        volumeMode: text,
      },
    ),
  },
  {
    topology: object({ requisite: listOf(object({ segments: texts })), first: index }),
    source: (value, field) => {
      const { handling } = (value ?? {}) as { handling?: unknown };
      (handling === 'snapshot' ? snapshotSource : cloneSource)(value, field);
    },
  },
);
