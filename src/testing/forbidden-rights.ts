/** What a provisioner was not permitted, as the sandbox reports it. */

/** A right that is missing. */
export interface ForbiddenRight {
  /** Such as `create`. */
  readonly verb: string;
  /** The API group; empty for the core group. */
  readonly group: string;
  /** Its plural, with a subresource such as in `persistentvolumes/status`. */
  readonly resource: string;
  /** Where; undefined at the scope of the cluster, such as for a list of all namespaces. */
  readonly namespace?: string;
}

/** The lines of a sandbox's output that name a right; one that is not complete yet is left out. */
export function forbiddenRights(output: string): ForbiddenRight[] {
  const lines = output.match(/^\{"forbidden":.*\}$/gm) ?? [];
  return lines.map((line) => (JSON.parse(line) as { forbidden: ForbiddenRight }).forbidden);
}

/** A line for each resource, with the rule that is missing. */
export function rightsText(rights: readonly ForbiddenRight[]): string {
  const key = ({ group, resource, namespace }: ForbiddenRight): string => JSON.stringify([group, resource, namespace]);
  const byResource = Map.groupBy(rights, key);
  return [...byResource.values()].map((of) => rightText(of)).join('\n');
}

function rightText(rights: readonly ForbiddenRight[]): string {
  const [{ group, resource, namespace } = { group: '', resource: '' }] = rights;
  const verbs = rights.map(({ verb }) => verb);
  const where =
    namespace === undefined ? 'at the scope of the cluster' : `in the namespace ${JSON.stringify(namespace)}`;
  const rule = `{apiGroups: ['${group}'], resources: ['${resource}'], verbs: [${verbs.join(', ')}]}`;
  return `forbidden: ${verbs.join(', ')} ${resource} ${where}; the rule that is missing: ${rule}`;
}
