import { printable } from './printable.ts';

/** What a POSIX shell takes as it is, also at the start of a word. */
const plain = /^[A-Za-z0-9_@%+:,./][A-Za-z0-9_@%+:,./=-]*$/;

/**
 * A text as one word of a command to copy, quoted for a POSIX shell if it has to be.
 *
 * @returns undefined for a text with characters that cannot be copied from a terminal or page.
 */
export function shellWord(text: string): string | undefined {
  if (printable(text) !== text) return undefined;
  return plain.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A command of such words; undefined where one cannot be copied. */
export function shellCommand(words: readonly string[]): string | undefined {
  const quoted = words.map(quotedWord);
  return quoted.includes(undefined) ? undefined : quoted.join(' ');
}

/** Of a flag only the value is quoted: `--delete='a b'`. */
function quotedWord(word: string): string | undefined {
  const [, flag = '', rest = word] = /^(-{1,2}[a-z-]+=)(.*)$/s.exec(word) ?? [];
  if (flag === '' && /^-{1,2}[A-Za-z-]+$/.test(word)) return word;
  const value = shellWord(rest);
  return value === undefined ? undefined : `${flag}${value}`;
}
