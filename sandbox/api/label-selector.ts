import { StatusError } from './status-error.ts';

/** Decides by an object's labels. */
export type LabelMatcher = (labels: Readonly<Record<string, string>>) => boolean;

const key = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?`;
const value = String.raw`[A-Za-z0-9._-]*`;
const requirementForms: { form: RegExp; matcher: (match: RegExpExecArray) => LabelMatcher }[] = [
  {
    form: new RegExp(`^(${key})$`),
    matcher:
      ([, name = '']) =>
      (labels) =>
        Object.hasOwn(labels, name),
  },
  {
    form: new RegExp(`^!\\s*(${key})$`),
    matcher:
      ([, name = '']) =>
      (labels) =>
        !Object.hasOwn(labels, name),
  },
  {
    form: new RegExp(`^(${key})\\s*==?\\s*(${value})$`),
    matcher:
      ([, name = '', want]) =>
      (labels) =>
        Object.hasOwn(labels, name) && labels[name] === want,
  },
  {
    form: new RegExp(`^(${key})\\s*!=\\s*(${value})$`),
    matcher:
      ([, name = '', unwanted]) =>
      (labels) =>
        !Object.hasOwn(labels, name) || labels[name] !== unwanted,
  },
  {
    form: new RegExp(`^(${key})\\s+(in|notin)\\s*\\(([^()]*)\\)$`),
    matcher: ([, name = '', operator, list = '']) => {
      const wanted = new Set(list.split(',').map((item) => item.trim()));
      return operator === 'in'
        ? (labels) => Object.hasOwn(labels, name) && wanted.has(labels[name] ?? '')
        : (labels) => !Object.hasOwn(labels, name) || !wanted.has(labels[name] ?? '');
    },
  },
  {
    form: new RegExp(`^(${key})\\s*([<>])\\s*(-?\\d+)$`),
    matcher:
      ([, name = '', operator, bound]) =>
      (labels) => {
        const text = labels[name];
        if (text === undefined || !/^-?\d+$/.test(text)) return false;
        return operator === '>' ? Number(text) > Number(bound) : Number(text) < Number(bound);
      },
  },
];

/**
 * Reads a label selector as it stands in a query, such as `a=b,c in (d,e),!f`; `undefined` for an empty one, which
 * matches everything (Kubernetes, "Labels and Selectors").
 *
 * @throws {StatusError} `BadRequest` for what it cannot read.
 */
export function parseLabelSelector(text: string | undefined): LabelMatcher | undefined {
  if (text === undefined || text.trim() === '') return undefined;
  const matchers = splitOutsideParentheses(text).map((part) => requirement(part.trim(), text));
  return (labels) => matchers.every((matches) => matches(labels));
}

function requirement(part: string, text: string): LabelMatcher {
  for (const { form, matcher } of requirementForms) {
    const match = form.exec(part);
    if (match !== null) return matcher(match);
  }
  throw new StatusError('BadRequest', `unable to parse requirement: found '${part}' in label selector '${text}'`);
}

function splitOutsideParentheses(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === '(') depth++;
    else if (character === ')') depth--;
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
