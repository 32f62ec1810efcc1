import type { MissingRule } from './findings/preflight-finding.ts';

/** A rule of a role, as the log of the sidecar writes it. */
export function verbRule({ apiGroup, resource, verbs }: Pick<MissingRule, 'apiGroup' | 'resource' | 'verbs'>): string {
  return `- apiGroups: ${list([apiGroup])}\n  resources: ${list([resource])}\n  verbs: ${list(verbs)}`;
}

/** A rule in one line. */
export function shortRule(rule: { apiGroups: string[]; resources: string[]; verbs: string[] }): string {
  return `- {apiGroups: ${list(rule.apiGroups)}, resources: ${list(rule.resources)}, verbs: ${list(rule.verbs)}}`;
}

function list(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(', ')}]`;
}
