/** Name of the volume attribute that keeps which partition of a disk was mounted. */
export const partitionKey = 'partition';

/**
 * The partition of a disk as a volume attribute has it.
 *
 * @returns nothing for a whole disk, which in-tree sources say by 0 or by silence.
 * @throws {Error} for what is no whole number.
 */
export function partitionOf(text: string): number | undefined {
  const partition = /^[+-]?\d+$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(partition)) throw new Error(`failed to convert partition "${text}" to a whole number`);
  return partition === 0 ? undefined : partition;
}
