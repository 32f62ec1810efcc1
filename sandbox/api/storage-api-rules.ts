/** Rules for the kinds of storage.k8s.io: StorageClass, VolumeAttributesClass, CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment. */
import type { SandboxObject } from './client.ts';
import { type Check, duplicate, each, type FieldError, forbidden, ifFilled, ifSet, invalid, isEmpty, isLongerThan, oneOf, required, syntax, tooLong } from './field-error.ts';
import { immutableFields, type KindRules, withoutEmpty } from './kind-rules.ts';
import { arrayAt, isObject, jsonEqual, type JsonObject, objectAt, stringAt, stringsAt } from './json.ts';
import { pathSegmentProblem, qualifiedNameProblem, subdomainProblem } from './names.ts';
import { quantityNanos } from './quantity.ts';
import { labelSelector, topologies } from './selector-rules.ts';


const nameBytes = 63;
const parameterCount = 512;
const parameterBytes = 262_144;

/** The name of a CSI driver where only such a one can stand: a DNS subdomain in any case, of at most 63 bytes. */
export const csiDriverName: Check = (value, path) => {
  if (isEmpty(value)) return [required(path)];
  const problem = subdomainProblem(String(value).toLowerCase());
  return [
    ...(isLongerThan(value, nameBytes) ? [tooLong(path, nameBytes)] : []),
    ...(problem === '' ? [] : [invalid(path, value, problem)]),
  ];
};

/** The name of whatever provisions: a qualified name in any case. */
const provisionerName: Check = (value, path) => {
  if (isEmpty(value)) return [required(path)];
  const problem = qualifiedNameProblem(String(value).toLowerCase());
  return problem === '' ? [] : [invalid(path, value, problem)];
};

/** Parameters of a class: not too many, not too long, all with a key. */
const parameters: Check = (value, path) => {
  const entries = isObject(value) ? Object.entries(value) : [];
  if (entries.length > parameterCount) return [tooLong(path, parameterCount)];
  const errors: FieldError[] = entries.some(([key]) => key === '')
    ? [invalid(path, '', 'field can not be empty.')]
    : [];
  const bytes = entries.flat().reduce<number>((sum, text) => sum + Buffer.byteLength(String(text)), 0);
  if (bytes > parameterBytes) errors.push(tooLong(path, parameterBytes));
  return errors;
};

/** Defaults and checks of StorageClass. */
export const storageClassRules: KindRules = {
  complete: defaultClass,
  validate: (storageClass) => [
    ...provisionerName(storageClass['provisioner'], 'provisioner'),
    ...parameters(storageClass['parameters'], 'parameters'),
    ...ifFilled(oneOf('Delete', 'Retain'))(storageClass['reclaimPolicy'], 'reclaimPolicy'),
    ...oneOf('Immediate', 'WaitForFirstConsumer')(storageClass['volumeBindingMode'], 'volumeBindingMode'),
    ...topologies(storageClass['allowedTopologies'], 'allowedTopologies'),
  ],
  validateUpdate: (storageClass, old) =>
    immutableFields(storageClass, old, ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode']),
};

function defaultClass(storageClass: SandboxObject): void {
  storageClass['reclaimPolicy'] ??= 'Delete';
  storageClass['volumeBindingMode'] ??= 'Immediate';
}

/** Checks of CSIStorageCapacity; the largest size of a volume may be any amount. */
export const storageCapacityRules: KindRules = {
  validate(object, old) {
    const anyValue = old !== undefined && labelSelector()(old['nodeTopology'], '').length > 0;
    const errors = [
      ...ifSet(labelSelector(anyValue))(object['nodeTopology'], 'nodeTopology'),
      ...syntax(subdomainProblem)(object['storageClassName'], 'storageClassName'),
    ];
    const { capacity } = object;
    if ((quantityNanos(capacity) ?? 0n) < 0n) {
      errors.push(invalid('capacity', capacity, 'must be greater than or equal to 0'));
    }
    return errors;
  },
  validateUpdate: (object, old) => immutableFields(object, old, ['nodeTopology', 'storageClassName']),
};

const leastPeriodSeconds = 10;
const leastExpirationSeconds = 600;
const mostExpirationSeconds = 2 ** 32;

/** Defaults and checks of CSIDriver. */
export const csiDriverRules: KindRules = {
  complete: defaultDriver,
  updatedGenerateNameProblem: pathSegmentProblem,
  validate(driver) {
    const spec = objectAt(driver, 'spec');
    return [
      ...oneOf('ReadWriteOnceWithFSType', 'File', 'None')(spec['fsGroupPolicy'], 'spec.fsGroupPolicy'),
      ...arrayAt(spec, 'volumeLifecycleModes').flatMap((mode) =>
        oneOf('Persistent', 'Ephemeral')(mode, 'spec.volumeLifecycleModes'),
      ),
      ...tokenErrors(spec),
      ...periodErrors(spec['nodeAllocatableUpdatePeriodSeconds']),
    ];
  },
  validateUpdate(driver, old) {
    const [spec, oldSpec] = [objectAt(driver, 'spec'), objectAt(old, 'spec')];
    return [['attachRequired', 'attachedRequired'] as const, ['volumeLifecycleModes', 'volumeLifecycleModes'] as const]
      .filter(([field]) => !jsonEqual(spec[field], oldSpec[field]))
      .map(([field, shown]) => invalid(`spec.${shown}`, spec[field], 'field is immutable'));
  },
};

function defaultDriver(driver: SandboxObject): void {
  const spec: JsonObject = (driver['spec'] = { ...objectAt(driver, 'spec') });
  spec['attachRequired'] ??= true;
  spec['podInfoOnMount'] ??= false;
  spec['storageCapacity'] ??= false;
  spec['fsGroupPolicy'] ??= 'ReadWriteOnceWithFSType';
  if (arrayAt(spec, 'volumeLifecycleModes').length === 0) spec['volumeLifecycleModes'] = ['Persistent'];
  spec['requiresRepublish'] ??= false;
  spec['seLinuxMount'] ??= false;
}

function periodErrors(period: unknown): FieldError[] {
  if (typeof period !== 'number' || period >= leastPeriodSeconds) return [];
  return [invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, `must be at least ${leastPeriodSeconds} seconds`)];
}

function tokenErrors(spec: JsonObject): FieldError[] {
  const requests = arrayAt(spec, 'tokenRequests');
  const audiences = requests.map((request) => stringAt(request, 'audience'));
  const inSecrets = spec['serviceAccountTokenInSecrets'];
  return [
    ...(inSecrets !== undefined && requests.length === 0
      ? [invalid('spec.serviceAccountTokenInSecrets', inSecrets, 'there are no tokenRequests')]
      : []),
    ...requests.flatMap((request, index) => {
      const path = `spec.tokenRequests[${index}]`;
      const audience = audiences[index];
      if (audiences.indexOf(audience ?? '') < index) return [duplicate(`${path}.audience`, audience)];
      return expirationErrors(isObject(request) ? request['expirationSeconds'] : undefined, path);
    }),
  ];
}

function expirationErrors(seconds: unknown, path: string): FieldError[] {
  if (typeof seconds !== 'number') return [];
  if (seconds >= leastExpirationSeconds && seconds <= mostExpirationSeconds) return [];
  return [invalid(`${path}.expirationSeconds`, seconds, 'must be from 10 minutes to 2^32 seconds')];
}

const nodeIdBytes = 256;

const nodeId: Check = (value, path) => {
  if (isEmpty(value)) return [required(path)];
  return isLongerThan(value, nodeIdBytes) ? [invalid(path, value, `must be ${nodeIdBytes} characters or less`)] : [];
};

const count: Check = (value, path) =>
  typeof value === 'number' && value < 0 ? [invalid(path, value, 'must be greater than or equal to 0')] : [];

const driverFields = each({ name: csiDriverName, nodeID: nodeId, allocatable: ifSet(each({ count })) });

/** Checks of CSINode. */
export const csiNodeRules: KindRules = {
  validate(csiNode) {
    const drivers = arrayAt(csiNode, 'spec', 'drivers');
    const names = drivers.map((driver) => stringAt(driver, 'name'));
    return drivers.flatMap((driver, index) => {
      const path = `spec.drivers[${index}]`;
      const name = names[index] ?? '';
      return [
        ...driverFields(driver, path),
        ...(names.indexOf(name) < index ? [duplicate(`${path}.name`, name)] : []),
        ...topologyKeyErrors(stringsAt(driver, 'topologyKeys'), path),
      ];
    });
  },
  validateUpdate: (csiNode, old) =>
    arrayAt(old, 'spec', 'drivers').flatMap((oldDriver) =>
      arrayAt(csiNode, 'spec', 'drivers')
        .filter((driver) => stringAt(driver, 'name') === stringAt(oldDriver, 'name'))
        .filter((driver) => !jsonEqual(unchanging(driver), unchanging(oldDriver)))
        .map((driver) => invalid('spec.drivers', driver, 'field is immutable')),
    ),
};

function topologyKeyErrors(keys: readonly string[], path: string): FieldError[] {
  return keys.flatMap((key, index) => {
    const problem = qualifiedNameProblem(key);
    return [
      ...(keys.indexOf(key) < index ? [duplicate(path, key)] : []),
      ...(problem === '' ? [] : [invalid(path, key, problem)]),
    ];
  });
}

/** All of a driver but how many volumes it takes. */
function unchanging(driver: unknown): unknown {
  return isObject(driver) ? withoutEmpty({ ...driver, allocatable: undefined }) : driver;
}

/** Checks of VolumeAttachment. */
export const attachmentRules: KindRules = {
  prepareCreate(attachment) {
    attachment['status'] = { attached: false };
  },
  validate(attachment) {
    const errors = provisionerName(objectAt(attachment, 'spec')['attacher'], 'spec.attacher');
    if (stringAt(attachment, 'spec', 'nodeName') === '') errors.push(required('spec.nodeName'));
    if (Object.keys(objectAt(attachment, 'spec', 'source')).length === 0) errors.push(required('spec.source'));
    return errors;
  },
  validateUpdate: (attachment, old) =>
    jsonEqual(attachment['spec'], old['spec']) ? [] : [invalid('spec', attachment['spec'], 'field is immutable')],
};

/** Checks of VolumeAttributesClass. */
export const attributesClassRules: KindRules = {
  validate: (object) => [
    ...provisionerName(object['driverName'], 'driverName'),
    ...parameters(object['parameters'], 'parameters'),
    ...(Object.keys(objectAt(object, 'parameters')).length === 0
      ? [required('parameters', 'must contain at least one key/value pair')]
      : []),
  ],
  validateUpdate: (object, old) =>
    ['driverName', 'parameters']
      .filter((field) => !jsonEqual(object[field], old[field]))
      .map((field) => forbidden(field, `updates to ${field} are forbidden.`)),
};
