import type { SandboxObject } from './client.ts';
import { oneOf } from './field-checks.ts';
import { duplicate, invalid } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { arrayAt, isObject, jsonEqual, objectAt, stringAt } from './json.ts';
import type { JsonObject } from './json.ts';
import type { KindRules } from './kind-rules.ts';
import { pathSegmentProblem } from './names.ts';

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
