/** What somebody probably meant who wrote a name that does not exist. */
import { editDistance } from './edit-distance.ts';

/** Shorter names, without their separators, are similar by accident. */
const minLength = 3;
/** From this length on, two letters may differ. */
const longName = 8;

/**
 * The name that is most like the wanted one: it differs in letter case, separators, the order of its words, or in one letter or two.
 *
 * @returns undefined where none is similar.
 */
export function nearestName(wanted: string, names: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let fewest = Infinity;
  for (const name of names) {
    const edits = name === wanted ? Infinity : editsBetween(wanted, name);
    if (edits < fewest) [nearest, fewest] = [name, edits];
  }
  return nearest;
}

/** Infinity for names that are not similar. */
function editsBetween(one: string, other: string): number {
  const [words, others] = [wordsOf(one), wordsOf(other)];
  if (words.toSorted().join(' ') === others.toSorted().join(' ')) return 0;
  const [letters, otherLetters] = [words.join(''), others.join('')];
  if (letters === otherLetters) return 0;
  const shorter = Math.min(letters.length, otherLetters.length);
  const allowed = shorter < minLength ? 0 : shorter < longName ? 1 : 2;
  if (Math.abs(letters.length - otherLetters.length) > allowed) return Infinity;
  const edits = editDistance(letters, otherLetters, { swaps: true });
  return edits <= allowed ? edits : Infinity;
}

function wordsOf(name: string): string[] {
  return name.toLowerCase().split(/[^a-z0-9]+/);
}
