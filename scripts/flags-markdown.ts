import { flagGroups, flagList, type FlagSpec, isBoolean } from '../src/cli/flags.ts';

/** The flags as Markdown tables, one per group: docs/flags.md holds exactly this text. */
export function flagTableMarkdown(): string {
  const parts: string[] = [];
  for (const [group, title] of Object.entries(flagGroups)) {
    const rows = flagList.filter(([, spec]) => spec.group === group).map(([name, spec]) => row(name, spec));
    parts.push(`## ${title}\n\n| Flag | Default | Meaning |\n| --- | --- | --- |\n${rows.join('\n')}\n`);
  }
  return parts.join('\n');
}

function row(name: string, spec: FlagSpec): string {
  const names = spec.shorthand === undefined ? `\`--${name}\`` : `\`-${spec.shorthand}\`, \`--${name}\``;
  return `| ${names} | ${defaultText(spec)} | ${escape(meaning(spec))} |`;
}

function defaultText(spec: FlagSpec): string {
  if (spec.defaultNote !== undefined) return spec.defaultNote;
  const text = isBoolean(spec) && spec.default === '' ? 'false' : spec.default;
  return text === '' ? '' : `\`${text}\``;
}

function meaning(spec: FlagSpec): string {
  if (spec.deprecated !== undefined) return `${spec.description} Deprecated: ${spec.deprecated}.`;
  return spec.withoutEffect === true ? `${spec.description} Accepted without effect.` : spec.description;
}

function escape(text: string): string {
  return text.replaceAll('|', '\\|').replace(/<([^>]+)>/g, '`<$1>`');
}

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
