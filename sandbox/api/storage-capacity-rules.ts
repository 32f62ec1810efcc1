import { ifSet, syntax } from './field-checks.ts';
import { invalid } from './field-error.ts';
import { immutableFields } from './immutable-fields.ts';
import type { KindRules } from './kind-rules.ts';
import { subdomainProblem } from './names.ts';
import { quantityNanos } from './quantity.ts';
import { labelSelector } from './selector-rules.ts';

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
