/** Name of the volume attribute that keeps which partition of a disk was mounted. */
export const partitionKey = 'partition';

/** Fields of sources hold 32 bits. */
const [lowest, highest] = [-(2 ** 31), 2 ** 31 - 1];

/**
 * The partition of a disk as a volume attribute has it.
 *
 * @returns nothing for a whole disk, which in-tree sources say by 0 or by silence.
 * @throws {Error} for what is no whole number of 32 bits.
 */
export function partitionOf(text: string): number | undefined {
  const partition = /^[+-]?\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(partition)) throw new Error(`failed to convert partition "${text}" to a whole number`);
  if (partition < lowest || partition > highest) {
    throw new Error(`failed to convert partition "${text}" to a whole number: it has more than 32 bits`);
  }
  return partition === 0 ? undefined : partition;
}
