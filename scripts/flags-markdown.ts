import { flagGroups, flagList, isBoolean, type FlagSpec } from '../src/cli/flags.ts';

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
