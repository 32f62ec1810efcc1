/** The longest value that is quoted whole; names of objects, which others choose within rules, are never longer. */
const maxValueChars = 256;
/** The longest text that is passed on whole, such as the error of a driver; more would only fill logs and events. */
export const maxTextChars = 65_536;

/**
 * A value of others as events, log lines and errors quote it: a long one is cut, and the cut tells how long it was, such as
 * `xyz… (1,500,000 characters)`. Secrets must be removed before: a part of one would no longer be recognised.
 *
 * @param maxChars - how much of a longer one is left. Default 256.
 */
export function shortValue(text: string, maxChars = maxValueChars): string {
  if (text.length <= maxChars) return text;
  const end = isPair(text, maxChars - 1) ? maxChars - 1 : maxChars;
  return `${copied(text.slice(0, end))}… (${text.length.toLocaleString('en-US')} characters)`;
}

/** Whether a character of two units begins there. */
function isPair(text: string, index: number): boolean {
  return (text.codePointAt(index) ?? 0) > 0xffff;
}

/** A part of a text keeps the whole text in memory; a copy of the part does not. */
function copied(part: string): string {
  return Buffer.from(part, 'utf16le').toString('utf16le');
}
