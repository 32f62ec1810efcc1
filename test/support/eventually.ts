import { eventually as untilWithin, type EventuallyOptions as Options } from '../../src/testing/eventually.ts';
import { patienceMs } from './patience.ts';

export type EventuallyOptions = Partial<Options>;

/**
 * As that of the testing kit, with time for a busy machine.
 *
 * @param options.withinMs - for a condition that by its nature takes a minute or more; default `patienceMs`.
 */
export async function eventually<T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  return await untilWithin(check, { withinMs: patienceMs, ...options });
}
