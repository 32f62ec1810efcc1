import { compareBytes } from '../../base/compare-bytes.ts';
import { goQuote } from '../../base/go-quote.ts';
import { shortValue } from '../../base/short-value.ts';

/** A template names tokens that have no value here. */
class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

/**
 * Expands `${token}` and `$token` in a template by the rules of Go's `os.Expand`, which class authors know. Values are
 * not expanded again.
 *
 * @throws {TemplateError} `invalid tokens: ["a" "b"]` with every token that `values` lacks.
 */
export function expandTemplate(template: string, values: Pick<ReadonlyMap<string, string>, 'get'>): string {
  const unknown = new Set<string>();
  let expanded = '';
  let at = 0;
  while (at < template.length) {
    const dollar = template.indexOf('$', at);
    if (dollar === -1 || dollar === template.length - 1) break;
    expanded += template.slice(at, dollar);
    const { token, length } = readToken(template, dollar + 1);
    if (token === undefined) {
      // Malformed braces vanish; a dollar sign before anything else stays.
      if (length === 0) expanded += '$';
    } else {
      const value = values.get(token);
      if (value === undefined) unknown.add(token);
      expanded += value ?? '';
    }
    at = dollar + 1 + length;
  }
  if (unknown.size > 0) {
    const tokens = [...unknown].sort(compareBytes).map((token) => goQuote(shortValue(token)));
    throw new TemplateError(`invalid tokens: [${tokens.join(' ')}]`);
  }
  return expanded + template.slice(at);
}

/** Reads what follows a dollar sign: the token, if any, and how many characters belong to it. */
function readToken(template: string, start: number): { token?: string; length: number } {
  const first = template.charAt(start);
  if (first === '{') {
    const end = template.indexOf('}', start);
    if (end === -1) return { length: 1 };
    if (end === start + 1) return { length: 2 };
    return { token: template.slice(start + 1, end), length: end - start + 1 };
  }
  if (/[*#$@!?\-0-9]/.test(first)) return { token: first, length: 1 };
  const word = /^\w+/.exec(template.slice(start))?.[0];
  return word === undefined ? { length: 0 } : { token: word, length: word.length };
}

const annotationToken = /^pvc\.annotations\['(.*)'\]$/s;

/**
 * The keys of the claim annotations that templates in the parameters of a class refer to, such as
 * `${pvc.annotations['team']}`.
 */
export function templateAnnotations(parameters: Record<string, string>): string[] {
  const keys: string[] = [];
  const values = {
    get: (token: string): string => {
      const key = annotationToken.exec(token)?.[1];
      if (key !== undefined) keys.push(key);
      return '';
    },
  };
  for (const template of Object.values(parameters)) expandTemplate(template, values);
  return keys;
}
