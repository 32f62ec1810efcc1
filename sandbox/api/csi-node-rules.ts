import { csiDriverName } from './driver-name-rules.ts';
import { each, ifSet, isEmpty, isLongerThan } from './field-checks.ts';
import type { Check } from './field-checks.ts';
import { duplicate, invalid, required } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { withoutEmpty } from './immutable-fields.ts';
import { arrayAt, isObject, jsonEqual, stringAt, stringsAt } from './json.ts';
import type { KindRules } from './kind-rules.ts';
import { qualifiedNameProblem } from './names.ts';

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
