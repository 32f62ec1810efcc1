import type { SandboxObject } from './client.ts';
import { duplicate, forbidden, invalid, notSupported, required } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { arrayAt, isObject, jsonEqual, objectAt, stringAt } from './json.ts';
import type { KindRules } from './kind-rules.ts';
import { qualifiedNameProblem, subdomainProblem } from './names.ts';
import { quantityNanos } from './quantity.ts';

/** Defaults and checks of StorageClass. */
export const classRules: KindRules = {
  prepareCreate(storageClass) {
    storageClass['reclaimPolicy'] ??= 'Delete';
    storageClass['volumeBindingMode'] ??= 'Immediate';
  },
  prepareUpdate(storageClass) {
    storageClass['reclaimPolicy'] ??= 'Delete';
    storageClass['volumeBindingMode'] ??= 'Immediate';
  },
  validate(storageClass) {
    const errors = nameErrors('provisioner', stringAt(storageClass, 'provisioner'));
    errors.push(...parameterErrors(storageClass));
    errors.push(...oneOf('reclaimPolicy', storageClass['reclaimPolicy'], ['Delete', 'Retain', 'Recycle']));
    return [
      ...errors,
      ...oneOf('volumeBindingMode', storageClass['volumeBindingMode'], ['Immediate', 'WaitForFirstConsumer']),
    ];
  },
  validateUpdate(storageClass, old) {
    const errors = ['parameters', 'provisioner', 'reclaimPolicy']
      .filter((field) => !jsonEqual(storageClass[field], old[field]))
      .map((field) => forbidden(field, `updates to ${field} are forbidden.`));
    return [...errors, ...immutable(storageClass, old, ['volumeBindingMode'])];
  },
};

/** Defaults and checks of CSIDriver. */
export const driverRules: KindRules = {
  prepareCreate: defaultDriver,
  prepareUpdate: defaultDriver,
  validate: (driver) => [
    ...oneOf('spec.fsGroupPolicy', objectAt(driver, 'spec')['fsGroupPolicy'], [
      'ReadWriteOnceWithFSType',
      'File',
      'None',
    ]),
    ...arrayAt(driver, 'spec', 'volumeLifecycleModes').flatMap((mode) =>
      oneOf('spec.volumeLifecycleModes', mode, ['Persistent', 'Ephemeral']),
    ),
  ],
};

function defaultDriver(driver: SandboxObject): void {
  const spec = (driver['spec'] = { ...objectAt(driver, 'spec') }) as Record<string, unknown>;
  spec['attachRequired'] ??= true;
  spec['podInfoOnMount'] ??= false;
  spec['storageCapacity'] ??= false;
  spec['fsGroupPolicy'] ??= 'ReadWriteOnceWithFSType';
  spec['volumeLifecycleModes'] ??= ['Persistent'];
  spec['requiresRepublish'] ??= false;
  spec['seLinuxMount'] ??= false;
}

/** Checks of CSINode. */
export const csiNodeRules: KindRules = {
  validate(csiNode) {
    const seen = new Set<string>();
    return arrayAt(csiNode, 'spec', 'drivers').flatMap((driver, index) => {
      const path = `spec.drivers[${index}]`;
      const name = stringAt(driver, 'name');
      const errors: FieldError[] = [];
      if (name === '') errors.push(required(`${path}.name`));
      else if (seen.has(name)) errors.push(duplicate(`${path}.name`, name));
      seen.add(name);
      if (stringAt(driver, 'nodeID') === '') errors.push(required(`${path}.nodeID`));
      return errors;
    });
  },
};

/** Checks of VolumeAttachment. */
export const attachmentRules: KindRules = {
  prepareCreate(attachment) {
    attachment['status'] = { attached: false };
  },
  validate(attachment) {
    const errors = nameErrors('spec.attacher', stringAt(attachment, 'spec', 'attacher'));
    if (stringAt(attachment, 'spec', 'nodeName') === '') errors.push(required('spec.nodeName'));
    if (Object.keys(objectAt(attachment, 'spec', 'source')).length === 0) errors.push(required('spec.source'));
    return errors;
  },
  validateUpdate: (attachment, old) =>
    jsonEqual(attachment['spec'], old['spec']) ? [] : [invalid('spec', attachment['spec'], 'field is immutable')],
};

/** Checks of VolumeAttributesClass. */
export const attributesClassRules: KindRules = {
  validate: (object) => [...nameErrors('driverName', stringAt(object, 'driverName')), ...parameterErrors(object)],
  validateUpdate: (object, old) =>
    ['driverName', 'parameters']
      .filter((field) => !jsonEqual(object[field], old[field]))
      .map((field) => forbidden(field, `updates to ${field} are forbidden.`)),
};

/** Checks of CSIStorageCapacity. */
export const capacityRules: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    const name = stringAt(object, 'storageClassName');
    const problem = name === '' ? '' : subdomainProblem(name);
    if (name === '') errors.push(required('storageClassName'));
    else if (problem !== '') errors.push(invalid('storageClassName', name, problem));
    for (const field of ['capacity', 'maximumVolumeSize']) {
      const amount = quantityNanos(object[field]);
      if (amount !== undefined && amount < 0n) {
        errors.push(invalid(field, object[field], 'must be greater than or equal to 0'));
      }
    }
    return errors;
  },
  validateUpdate: (object, old) => immutable(object, old, ['nodeTopology', 'storageClassName']),
};

function immutable(object: SandboxObject, old: SandboxObject, names: string[]): FieldError[] {
  return names
    .filter((field) => !jsonEqual(object[field], old[field]))
    .map((field) => invalid(field, object[field], 'field is immutable'));
}

function oneOf(field: string, value: unknown, supported: string[]): FieldError[] {
  return value === undefined || (supported as unknown[]).includes(value) ? [] : [notSupported(field, value, supported)];
}

function nameErrors(field: string, name: string): FieldError[] {
  if (name === '') return [required(field)];
  const problem = qualifiedNameProblem(name.toLowerCase());
  return problem === '' ? [] : [invalid(field, name, problem)];
}

function parameterErrors(object: SandboxObject): FieldError[] {
  const { parameters } = object;
  if (!isObject(parameters)) return [];
  const entries = Object.entries(parameters);
  const errors: FieldError[] = [];
  if (entries.length > 512) errors.push(forbidden('parameters', 'must have at most 512 items'));
  if (entries.some(([key]) => key === '')) errors.push(invalid('parameters', '', 'field can not be empty.'));
  const bytes = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(typeof value === 'string' ? value : ''),
    0,
  );
  if (bytes > 262_144) errors.push(forbidden('parameters', 'must have at most 262144 bytes'));
  return errors;
}
