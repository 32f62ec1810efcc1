/** Syntax of names and labels (Kubernetes, "Object Names and IDs", "Labels and Selectors"). */

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const dnsLabel = new RegExp(`^${label}$`);
const dnsSubdomain = new RegExp(`^${label}(\\.${label})*$`);
const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/** What is wrong with a DNS-1123 subdomain of at most 253 characters; empty if nothing. */
export function subdomainProblem(name: string): string {
  if (name.length > 253) return 'must be no more than 253 characters';
  if (dnsSubdomain.test(name)) return '';
  return (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
    'and must start and end with an alphanumeric character ' +
    "(e.g. 'example.com', regex used for validation is " +
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
  );
}

/** What is wrong with a DNS-1123 label of at most 63 characters; empty if nothing. */
export function labelNameProblem(name: string): string {
  if (name.length > 63) return 'must be no more than 63 characters';
  if (dnsLabel.test(name)) return '';
  return (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " +
    'and must start and end with an alphanumeric character ' +
    "(e.g. 'my-name', or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
  );
}

/** What is wrong with a path segment, the name rule of RBAC objects; empty if nothing. */
export function pathSegmentProblem(name: string): string {
  if (name === '.' || name === '..') return `may not be '${name}'`;
  return /[/%]/.test(name) ? "may not contain '/' or '%'" : '';
}

/** What is wrong with a qualified name such as `example.com/key`; empty if nothing. */
export function qualifiedNameProblem(name: string): string {
  const parts = name.split('/');
  const local = parts.at(-1) ?? '';
  if (parts.length > 2) return 'a qualified name must consist of an optional prefix, one slash and a name part';
  const prefix = parts.length === 2 ? (parts[0] ?? '') : undefined;
  if (prefix !== undefined) {
    if (prefix === '') return 'prefix part must be non-empty';
    const problem = subdomainProblem(prefix);
    if (problem !== '') return `prefix part ${problem}`;
  }
  if (local === '') return 'name part must be non-empty';
  if (local.length > 63) return 'name part must be no more than 63 characters';
  if (qualifiedPart.test(local)) return '';
  return "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
}

/** What is wrong with a label's value; empty if nothing. */
export function labelValueProblem(value: string): string {
  if (value.length > 63) return 'must be no more than 63 characters';
  if (value === '' || qualifiedPart.test(value)) return '';
  return (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " +
    'and must start and end with an alphanumeric character'
  );
}

const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const baseLength = 58;

/** A number in [0,1), as `Math.random`. */
export type RandomSource = () => number;

/** A name made of `generateName`, cut to 58 characters, and five random characters. */
export function generatedName(base: string, random: RandomSource): string {
  let suffix = '';
  for (let index = 0; index < suffixLength; index++) {
    suffix += suffixLetters.charAt(Math.floor(random() * suffixLetters.length));
  }
  return base.slice(0, baseLength) + suffix;
}

/** A UUID of version 4 from a source that tests may seed. */
export function randomUid(random: RandomSource): string {
  let digits = '';
  for (let index = 0; index < 32; index++) digits += Math.floor(random() * 16).toString(16);
  const variant = (8 + Math.floor(random() * 4)).toString(16);
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(13, 16)}`,
    variant + digits.slice(17, 20),
    digits.slice(20),
  ].join('-');
}
