import { parseAccept } from './presentation.ts';
import { groupVersion, type ResourceType, type ResourceTypes, type Subresource } from './resource-type.ts';
import { reviewKinds } from './reviews.ts';

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** What discovery says of a subresource. */
const subresources: Record<Subresource, { verbs: string[]; group?: string; version?: string; kind?: string }> = {
  status: { verbs: ['get', 'patch', 'update'] },
  finalize: { verbs: ['update'] },
  binding: { verbs: ['create'], group: '', version: 'v1', kind: 'Binding' },
  eviction: { verbs: ['create'], group: 'policy', version: 'v1', kind: 'Eviction' },
  scale: { verbs: ['get', 'patch', 'update'], group: 'autoscaling', version: 'v1', kind: 'Scale' },
  token: { verbs: ['create'], group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
};

/** The Kubernetes version whose behaviour the end-to-end tests compare with that of the sandbox. */
export const kubernetesVersion = '1.36.3';

/** Response to `/version`. @param version - as in `1.36.3`. */
export function versionInfo(version: string): object {
  const [major, minor] = version.split('.');
  return {
    major,
    minor,
    gitVersion: `v${version}+embedded`,
    gitCommit: '0000000000000000000000000000000000000000',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: 'none',
    compiler: 'node',
    platform: `${process.platform}/${process.arch}`,
  };
}

/** Response to `/api`. */
export function coreVersions(): object {
  return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
}

/** Response to `/apis`. */
export function groupList(types: ResourceTypes): object {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: allGroups(types).map(groupBody) };
}

/** Response to `/apis/<group>`, or `undefined` for a group that is not served. */
export function groupInfo(types: ResourceTypes, group: string): object | undefined {
  const found = allGroups(types).find((each) => each.group === group);
  return found === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(found) };
}

function groupBody({ group, versions }: { group: string; versions: string[] }): object {
  const named = versions.map((version) => ({ groupVersion: groupVersion(group, version), version }));
  return { name: group, versions: named, preferredVersion: named[0] };
}

/** Named groups, the groups of reviews included. */
function allGroups(types: ResourceTypes): { group: string; versions: string[] }[] {
  const groups = types.groups().filter(({ group }) => group !== '');
  for (const { group, version } of reviewKinds) {
    if (!groups.some((each) => each.group === group)) groups.push({ group, versions: [version] });
  }
  return groups;
}

/** Response to `/api/v1` and `/apis/<group>/<version>`, or `undefined` if nothing is served there. */
export function resourceList(types: ResourceTypes, group: string, version: string): object | undefined {
  const resources: object[] = [];
  for (const type of types.inVersion(group, version)) {
    resources.push({
      name: type.plural,
      singularName: type.singular,
      namespaced: type.namespaced,
      kind: type.kind,
      verbs,
      ...names(type),
    });
    for (const name of type.subresources) {
      const { verbs: ownVerbs, kind = type.kind, group: ownGroup, version: ownVersion } = subresources[name];
      resources.push({
        name: `${type.plural}/${name}`,
        singularName: '',
        namespaced: type.namespaced,
        ...(ownGroup === undefined ? {} : { group: ownGroup, version: ownVersion }),
        kind,
        verbs: ownVerbs,
      });
    }
  }
  for (const review of reviewKinds) {
    if (review.group !== group || review.version !== version) continue;
    resources.push({ name: review.plural, singularName: '', namespaced: false, kind: review.kind, verbs: ['create'] });
  }
  if (resources.length === 0) return undefined;
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: groupVersion(group, version), resources };
}

function names({ shortNames, categories }: ResourceType): object {
  return {
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
  };
}

/**
 * The version of aggregated discovery a client understands, or `undefined` for legacy discovery. A client that names
 * only v2beta1 must not get v2: it would see no resources at all.
 */
export function aggregatedVersion(accept: string | undefined): 'v2' | 'v2beta1' | undefined {
  const offered = parseAccept(accept)
    .filter(({ parameters }) => parameters.get('as') === 'APIGroupDiscoveryList')
    .map(({ parameters }) => parameters.get('v'));
  if (offered.includes('v2')) return 'v2';
  return offered.includes('v2beta1') ? 'v2beta1' : undefined;
}

/** Aggregated discovery for `/api` (`core`) or `/apis`, and its content type. */
export function aggregatedDiscovery(
  types: ResourceTypes,
  version: 'v2' | 'v2beta1',
  core: boolean,
): { body: object; contentType: string } {
  const groups = core ? [{ group: '', versions: ['v1'] }] : allGroups(types);
  const items = groups.map((each) => ({
    metadata: each.group === '' ? {} : { name: each.group },
    versions: each.versions.map((name) => ({
      version: name,
      freshness: 'Current',
      resources: aggregatedResources(types, each.group, name),
    })),
  }));
  return {
    body: { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items },
    contentType: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
  };
}

function aggregatedResources(types: ResourceTypes, group: string, version: string): object[] {
  const resources: object[] = types.inVersion(group, version).map((type) => {
    const responseKind = { group, version, kind: type.kind };
    const own = type.subresources.map((name) => {
      const sub = subresources[name];
      return {
        subresource: name,
        responseKind: {
          group: sub.group ?? group,
          version: sub.version ?? version,
          kind: sub.kind ?? type.kind,
        },
        verbs: sub.verbs,
      };
    });
    return {
      resource: type.plural,
      responseKind,
      scope: type.namespaced ? 'Namespaced' : 'Cluster',
      singularResource: type.singular,
      verbs,
      ...names(type),
      ...(own.length === 0 ? {} : { subresources: own }),
    };
  });
  for (const review of reviewKinds) {
    if (review.group !== group || review.version !== version) continue;
    resources.push({
      resource: review.plural,
      responseKind: { group, version, kind: review.kind },
      scope: 'Cluster',
      singularResource: review.kind.toLowerCase(),
      verbs: ['create'],
    });
  }
  return resources;
}
