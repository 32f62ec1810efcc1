/**
 * The lines of a log in which the API server refused a right, or that ask for the rule to add. Stack traces do not
 * count, whatever the folders of the checkout are called.
 */
export function refusedRights(log: string): string[] {
  return log.match(/^.*( is forbidden: |Not permitted to use a resource).*$/gm) ?? [];
}
