/** An error as an explanation quotes it: a long one with both ends, as what wraps an error says more in front, and what was wrapped in the end. */

/** How many characters of each end are quoted. */
const headChars = 160;
const tailChars = 400;

/** On one line. */
export function quotedError(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  const leftOut = line.length - headChars - tailChars;
  if (leftOut <= 40) return line;
  const head = line.slice(0, headChars).replace(/\S*$/, '').trimEnd();
  const tail = line.slice(-tailChars).replace(/^\S*/, '').trimStart();
  return `${head || line.slice(0, headChars)} … ${tail || line.slice(-tailChars)}`.toWellFormed();
}
