/** A part of a Markdown file that a program writes: what stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`. */

/**
 * Replaces the part. Safe to repeat: the result is the same. Prettier leaves the part as it is.
 *
 * @throws {Error} when the text does not have both marks, once each and in this order.
 */
export function withSection(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const pieces = text.split(begin);
  const rest = pieces[1]?.split(end);
  if (pieces.length !== 2 || rest?.length !== 2)
    throw new Error(`the text does not have ${begin} and then ${end} once`);
  const unformatted = `<!-- prettier-ignore-start -->\n\n${content.trim()}\n\n<!-- prettier-ignore-end -->`;
  return `${pieces[0] ?? ''}${begin}\n${unformatted}\n${end}${rest[1] ?? ''}`;
}
