/**
 * The lines of a sidecar's log that ask for a rule to add: every request that the API server forbids for want of a right
 * comes to one, but those whose answer the sidecar can do without.
 */
export function refusedRights(log: string): string[] {
  return log.match(/^.*Not permitted to use a resource; add the rule.*$/gm) ?? [];
}
