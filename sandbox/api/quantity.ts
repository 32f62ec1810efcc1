import { formatQuantity, parseQuantity, QuantityError } from '../../src/base/quantity.ts';
import type { Quantity } from '../../src/base/quantity.ts';

/** The value in 1e-9 of its unit, or `undefined` for what is no quantity. */
export function quantityNanos(text: unknown): bigint | undefined {
  return parsed(text)?.nanos;
}

/** Whether two quantities are the same amount; unparsable ones are equal only as texts. */
export function sameQuantity(a: unknown, b: unknown): boolean {
  const [left, right] = [quantityNanos(a), quantityNanos(b)];
  return left === undefined || right === undefined ? a === b : left === right;
}

/** The canonical text (`1024Mi` is `1Gi`), or `undefined` for what is no quantity. */
export function canonicalQuantity(text: unknown): string | undefined {
  const quantity = parsed(text);
  return quantity === undefined ? undefined : formatQuantity(quantity);
}

function parsed(text: unknown): Quantity | undefined {
  if (typeof text !== 'string' && typeof text !== 'number') return undefined;
  try {
    return parseQuantity(typeof text === 'string' ? text.trim() : text);
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}
