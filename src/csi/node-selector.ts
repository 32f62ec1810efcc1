import { shortValue } from '../base/short-value.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm } from '../provision/objects.ts';

/**
 * Whether a node with these labels is among those selected: of the terms one must fit, of a term's conditions all. The
 * node's name is not known here, so conditions on fields exclude nobody. A term without any condition fits no node.
 *
 * @throws {Error} when no term fits and one of them cannot be read.
 * @see Kubernetes API reference, `NodeSelector`.
 */
export function selectsNode(terms: readonly NodeSelectorTerm[], labels: Readonly<Record<string, string>>): boolean {
  let unreadable: unknown;
  for (const [index, { matchExpressions = [], matchFields = [] }] of terms.entries()) {
    if (matchExpressions.length === 0 && matchFields.length === 0) continue;
    try {
      const tests = matchExpressions.map((expression, position) =>
        conditionOf(expression, `nodeSelectorTerms[${index}].matchExpressions[${position}]`),
      );
      if (tests.every((test) => test(labels))) return true;
    } catch (error) {
      unreadable ??= error;
    }
  }
  if (unreadable !== undefined) throw unreadable as Error;
  return false;
}

type Condition = (labels: Readonly<Record<string, string>>) => boolean;

/** A missing label matches `NotIn` and `DoesNotExist`. */
function conditionOf({ key, operator, values = [] }: NodeSelectorRequirement, where: string): Condition {
  switch (operator) {
    case 'In':
      return (labels) => labels[key] !== undefined && values.includes(labels[key]);
    case 'NotIn':
      return (labels) => labels[key] === undefined || !values.includes(labels[key]);
    case 'Exists':
      return (labels) => labels[key] !== undefined;
    case 'DoesNotExist':
      return (labels) => labels[key] === undefined;
    case 'Gt':
    case 'Lt': {
      const bound = /^[^+-]/.test(values[0] ?? '') ? integer(values[0]) : undefined; // with a sign it is no value of a label
      if (values.length !== 1 || bound === undefined) {
        throw new Error(`${where}.values: Invalid value: for ${operator} it must be one integer`);
      }
      return (labels) => {
        const value = integer(labels[key]);
        return value !== undefined && (operator === 'Gt' ? value > bound : value < bound);
      };
    }
    default:
      throw new Error(
        `${where}.operator: Unsupported value: ${JSON.stringify(shortValue(operator))}: supported values: ` +
          '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
      );
  }
}

/** Of 64 bits, as for the scheduler. */
function integer(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ''));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
