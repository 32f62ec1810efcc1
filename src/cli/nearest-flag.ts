import { editDistance } from '../base/edit-distance.ts';
import { flagList, type FlagName } from './flags.ts';

/**
 * The flag that was most likely meant, or undefined when none is close: one within a third of the letters, else
 * the longest one that makes up the beginning or the end, as in `--enable-leader-election`.
 *
 * @param given - a name that no flag has, without dashes.
 */
export function nearestFlag(given: string): FlagName | undefined {
  if (given.length > maxLength) return undefined;
  const word = given.toLowerCase().replaceAll('_', '-');
  let nearest: { name: FlagName; distance: number } | undefined;
  let part: FlagName | undefined;
  for (const [name] of flagList) {
    const distance = editDistance(word, name);
    const near = distance <= Math.max(word.length, name.length) / 3;
    if (near && distance < (nearest?.distance ?? Infinity)) nearest = { name, distance };
    if (!word.startsWith(`${name}-`) && !word.endsWith(`-${name}`)) continue;
    if (name.length > Math.max(2, part?.length ?? 0)) part = name;
  }
  return nearest?.name ?? part;
}

/** Max length of a name that counts as a typo. */
const maxLength = 100;
