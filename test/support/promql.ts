/** A family that a PromQL expression selects, with the labels it asks for. */
export interface Selector {
  metric: string;
  labels: string[];
}

const clauses = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const keywords = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);

/** What an expression selects. Enough for our own rules and dashboards, no general parser. */
export function selectorsOf(expression: string): Selector[] {
  const bare = expression
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\[[^\]]*\]/g, '') // ranges
    .replace(clauses, ' ');
  const found: Selector[] = [];
  for (const [, name = '', matchers = ''] of bare.matchAll(
    /(?<![\w$])([a-zA-Z_:][\w:]*)(?!\w|\s*\()(?:\{([^}]*)\})?/g,
  )) {
    if (keywords.has(name)) continue;
    found.push({
      metric: name,
      labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
    });
  }
  return found;
}

/** The labels that an expression groups or joins by. */
export function groupingLabels(expression: string): string[] {
  const bare = expression.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  return [...bare.matchAll(clauses)]
    .flatMap(([, list = '']) => list.split(',').map((label) => label.trim()))
    .filter((label) => label !== '');
}
