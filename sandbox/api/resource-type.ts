import type { ResourceRef, SandboxObject } from './client.ts';

/** A served resource: how it is called, addressed and written. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  /** Served versions, the preferred one first; they differ in nothing but their name. */
  readonly versions: readonly string[];
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly Subresource[];
  /** Name of the storage; two types with one storage show the same objects. */
  readonly storage: string;
  /** `apiVersion` of the stored form. */
  readonly storedApiVersion: string;
  /** Custom-kind rules: no strategic merge, no unconditional PUT, `/status` leaves metadata alone. */
  readonly custom: boolean;
  /** `metadata.generation` counts changes of anything but metadata and status. */
  readonly generation: boolean;
  /** PUT without a `resourceVersion` overwrites. */
  readonly unconditionalUpdate: boolean;
  /** PUT of a missing object creates it. */
  readonly createOnUpdate: boolean;
  /** DELETE returns the object instead of a Status. */
  readonly deleteReturnsObject: boolean;
  /** From the stored form to the form of this type, where they differ in more than `apiVersion`. */
  readonly fromStored?: (object: SandboxObject) => SandboxObject;
  /** The way back. */
  readonly toStored?: (object: SandboxObject) => SandboxObject;
}

/** Subresources with a route of their own. */
export type Subresource = 'status' | 'binding' | 'eviction' | 'finalize' | 'token' | 'scale';

/** A type as one request names it. */
export interface VersionedType {
  readonly type: ResourceType;
  readonly version: string;
}

/** `v1` or `group/version`. */
export function groupVersion(group: string, version: string): string {
  return group === '' ? version : `${group}/${version}`;
}

/** `plural` or `plural.group`, as error texts and kubectl write it. */
export function qualifiedResource(type: { group: string; plural: string }): string {
  return type.group === '' ? type.plural : `${type.plural}.${type.group}`;
}

/** What a type is made from; everything else has a default. */
export interface ResourceSketch {
  group?: string;
  versions?: readonly string[];
  plural: string;
  kind: string;
  namespaced?: boolean;
  shortNames?: readonly string[];
  categories?: readonly string[];
  subresources?: readonly Subresource[];
  storage?: string;
  storedApiVersion?: string;
  custom?: boolean;
  generation?: boolean;
  unconditionalUpdate?: boolean;
  createOnUpdate?: boolean;
  deleteReturnsObject?: boolean;
  singular?: string;
  listKind?: string;
  fromStored?: (object: SandboxObject) => SandboxObject;
  toStored?: (object: SandboxObject) => SandboxObject;
}

/** Fills a sketch up with the defaults of its class of kinds. */
export function defineResource(sketch: ResourceSketch): ResourceType {
  const { group = '', versions = ['v1'], custom = false } = sketch;
  return {
    group,
    versions,
    singular: sketch.kind.toLowerCase(),
    listKind: `${sketch.kind}List`,
    namespaced: false,
    shortNames: [],
    categories: [],
    subresources: [],
    storage: group === '' ? sketch.plural : `${sketch.plural}.${group}`,
    storedApiVersion: groupVersion(group, versions[0] ?? 'v1'),
    custom,
    generation: custom,
    unconditionalUpdate: !custom,
    createOnUpdate: false,
    deleteReturnsObject: false,
    ...sketch,
  };
}

/** The types a server serves, by group, version and plural; disabled ones are as if they did not exist. */
export class ResourceTypes {
  readonly #types: ResourceType[] = [];
  readonly #byPath = new Map<string, VersionedType>();
  readonly #byStorage = new Map<string, ResourceType>();
  #generation = 0;

  constructor(types: Iterable<ResourceType>) {
    for (const type of types) this.add(type);
  }

  /** Grows with every change of the set, for caches of what is derived from it. */
  get generation(): number {
    return this.#generation;
  }

  /** Serves one more type; one with the same group and plural is replaced. */
  add(type: ResourceType): void {
    this.delete(type.group, type.plural);
    this.#types.push(type);
    for (const version of type.versions) this.#byPath.set(pathKey(type.group, version, type.plural), { type, version });
    if (!this.#byStorage.has(type.storage)) this.#byStorage.set(type.storage, type);
    this.#generation++;
  }

  /** Stops serving a type. */
  delete(group: string, plural: string): void {
    const index = this.#types.findIndex((type) => type.group === group && type.plural === plural);
    const type = this.#types[index];
    if (type === undefined) return;
    this.#types.splice(index, 1);
    for (const version of type.versions) this.#byPath.delete(pathKey(group, version, plural));
    if (this.#byStorage.get(type.storage) === type) this.#byStorage.delete(type.storage);
    this.#generation++;
  }

  find(ref: ResourceRef): VersionedType | undefined {
    return this.#byPath.get(pathKey(ref.group, ref.version, ref.plural));
  }

  /** The type whose objects lie in `storage`; the first one defined where several share it. */
  ofStorage(storage: string): ResourceType | undefined {
    return this.#byStorage.get(storage);
  }

  /** Every type served under one group and version. */
  inVersion(group: string, version: string): ResourceType[] {
    return this.#types.filter((type) => type.group === group && type.versions.includes(version));
  }

  /** Groups with their versions, preferred ones first, the core group first of all. */
  groups(): { group: string; versions: string[] }[] {
    const groups = new Map<string, Set<string>>();
    for (const type of this.#types) {
      const versions = groups.get(type.group) ?? new Set();
      for (const version of type.versions) versions.add(version);
      groups.set(type.group, versions);
    }
    return [...groups]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([group, versions]) => ({ group, versions: [...versions].sort(newerVersionFirst) }));
  }

  *[Symbol.iterator](): Generator<ResourceType> {
    yield* this.#types;
  }
}

function pathKey(group: string, version: string, plural: string): string {
  return `${group}/${version}/${plural}`;
}

/** Stable before beta before alpha, then the larger number (Kubernetes, "CustomResourceDefinition Versioning"). */
function newerVersionFirst(a: string, b: string): number {
  return versionRank(b) - versionRank(a);
}

function versionRank(version: string): number {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (match === null) return -1;
  const stage = match[2] === 'alpha' ? 0 : match[2] === 'beta' ? 1 : 2;
  return stage * 1e6 + Number(match[1]) * 1e3 + Number(match[3] ?? 0);
}
