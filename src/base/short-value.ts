/** The longest value that is quoted whole, in characters: no valid name of an object is longer. */
const maxValueChars = 256;
/** The longest text that is logged or recorded whole, in characters: no error of a driver is longer. */
export const maxTextChars = 65_536;

/**
 * A value that users or drivers chose, as events, log lines and errors quote it: a long one is truncated and followed
 * by its length, as in `xyz… (1,500,000 characters)`. Secrets must be removed before: a part of one would not be
 * recognised.
 *
 * @param maxChars - how many characters of a longer one are kept. Default 256.
 */
export function shortValue(text: string, maxChars = maxValueChars): string {
  if (text.length <= maxChars) return text;
  const end = isPair(text, maxChars - 1) ? maxChars - 1 : maxChars;
  return `${copied(text.slice(0, end))}… (${text.length.toLocaleString('en-US')} characters)`;
}

/** Whether a character of two UTF-16 units begins at the index. */
function isPair(text: string, index: number): boolean {
  return (text.codePointAt(index) ?? 0) > 0xffff;
}

/** A substring keeps the whole text in memory; a copy of it does not. */
export function copied(part: string): string {
  return Buffer.from(part, 'utf16le').toString('utf16le');
}
