import { parameters, provisionerName } from './driver-name-rules.ts';
import { forbidden, required } from './field-error.ts';
import { jsonEqual, objectAt } from './json.ts';
import type { KindRules } from './kind-rules.ts';

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
