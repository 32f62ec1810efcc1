/** How a list merges: element by element under a key, as a set of primitives, or as a whole. */
export type ListMerge =
  { readonly by: 'key'; readonly key: string } | { readonly by: 'value' } | { readonly by: 'whole' };

const keys = new Map<string, string>([
  ['containers', 'name'],
  ['initContainers', 'name'],
  ['ephemeralContainers', 'name'],
  ['volumes', 'name'],
  ['env', 'name'],
  ['imagePullSecrets', 'name'],
  ['schedulingGates', 'name'],
  ['resourceClaims', 'name'],
  ['volumeMounts', 'mountPath'],
  ['volumeDevices', 'devicePath'],
  ['ports', 'containerPort'],
  ['conditions', 'type'],
  ['ownerReferences', 'uid'],
  ['hostAliases', 'ip'],
  ['podIPs', 'ip'],
  ['topologySpreadConstraints', 'topologyKey'],
  ['Service ports', 'port'],
  ['ServiceAccount secrets', 'name'],
  ['CSINode drivers', 'name'],
  ['Node addresses', 'type'],
]);
const sets = new Set(['metadata.finalizers', 'spec.podCIDRs']);

/** How the list `field` of a built-in kind merges; `path` is its path without indexes. */
export function listMerge(kind: string, path: string): ListMerge {
  if (sets.has(path)) return { by: 'value' };
  const field = path.slice(path.lastIndexOf('.') + 1);
  const key = keys.get(`${kind} ${field}`) ?? keys.get(field);
  return key === undefined ? { by: 'whole' } : { by: 'key', key };
}
