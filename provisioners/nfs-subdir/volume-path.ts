/** Where a volume lies, as the names of directories from the root of the export. */
import path from 'node:path';
import {
  containedPath,
  type PersistentVolume,
  type PersistentVolumeClaim,
  pathComponents,
  PathError,
  ProvisionError,
  type ProvisionOptions,
} from '../../src/index.ts';
import { pathPatternOf } from './class-parameters.ts';
import { reservedReason } from './reserved-names.ts';

/** `${.PVC.…}` up to the first brace. */
const token = /\$\{\.PVC\.([^}]*)\}/g;

/** At least one name. */
export type VolumePath = readonly string[];

/**
 * The path of a claim's volume: what the pattern of the class makes of the claim, or, without a pattern or where that is
 * empty, `NAMESPACE-CLAIM-VOLUME`.
 *
 * @param roots - the export on the server and where it is mounted: a path must not become too long below either.
 * @returns the path, and whether the pattern made it: then other claims may have the same.
 * @throws {ProvisionError} state `finished` for a path that is refused, naming class, pattern and the offending part.
 */
export function pathOfClaim(
  { claim, storageClass, volumeName }: ProvisionOptions,
  roots: readonly string[],
): { path: VolumePath; isShared: boolean } {
  const { namespace = '', name } = claim.metadata;
  const pattern = pathPatternOf(storageClass);
  const expanded = expandPattern(pattern, claim);
  const isShared = expanded !== '';
  const text = isShared ? expanded : `${namespace}-${name}-${volumeName}`;
  try {
    const components = pathComponents(text);
    const reserved = reservedReason(components);
    if (reserved !== undefined) throw new PathError(reserved);
    for (const root of roots) containedPath(root, components.join('/'));
    return { path: components, isShared };
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    const what = isShared
      ? `StorageClass ${JSON.stringify(storageClass.metadata.name)}: pathPattern ${JSON.stringify(pattern)} gives no path for this claim`
      : 'the names of the namespace and of the claim are too long together';
    throw new ProvisionError(`${what}: ${error.message}`, { state: 'finished', cause: error });
  }
}

/**
 * Expands the pattern of a class for a claim: `${.PVC.name}`, `${.PVC.namespace}`, `${.PVC.labels.KEY}` and
 * `${.PVC.annotations.KEY}`. What the claim lacks, and any other token, becomes empty; all other text stays as it is. In one
 * pass: a value that looks like a token is not expanded again, since users choose the values.
 */
function expandPattern(pattern: string, { metadata }: Pick<PersistentVolumeClaim, 'metadata'>): string {
  const { name, namespace = '', labels = {}, annotations = {} } = metadata;
  return pattern.replaceAll(token, (_whole, field: string) => {
    if (field === 'name') return name;
    if (field === 'namespace') return namespace;
    return valueIn(labels, 'labels.', field) ?? valueIn(annotations, 'annotations.', field) ?? '';
  });
}

function valueIn(values: Record<string, string>, prefix: string, field: string): string | undefined {
  const key = field.slice(prefix.length);
  return field.startsWith(prefix) && Object.hasOwn(values, key) ? values[key] : undefined;
}

/**
 * The path of a volume below the export, also of one that the original made.
 *
 * @param sharePath - the exported folder on the server, as of `Settings`.
 * @throws {Error} for a volume that lies elsewhere, or at a name that is no volume's: nothing is ever guessed.
 */
export function pathOfVolume({ metadata, spec }: PersistentVolume, sharePath: string): VolumePath {
  const volume = `volume ${metadata.name}`;
  if (spec.nfs === undefined) throw new Error(`${volume} has no NFS source`);
  const components = componentsBelow(spec.nfs.path, sharePath);
  const text = JSON.stringify(spec.nfs.path);
  const reserved = components && reservedReason(components);
  if (reserved !== undefined) {
    throw new Error(
      `${volume} lies at ${text}, and ${reserved}: nothing is touched. Set its policy to Retain, and delete it`,
    );
  }
  if (components !== undefined) return components;
  throw new Error(`${volume} lies at ${text}, which is not a path below the export ${sharePath}: nothing is touched`);
}

/** Undefined for a path that is not below the folder, or not written as it should be. */
function componentsBelow(text: string, folder: string): VolumePath | undefined {
  const prefix = folder === '/' ? '/' : `${folder}/`;
  if (!text.startsWith(prefix)) return undefined;
  try {
    return pathComponents(text.slice(prefix.length));
  } catch (error) {
    if (error instanceof PathError) return undefined;
    throw error;
  }
}

/** As `pathOfVolume`, and undefined for a volume that lies elsewhere. */
export function pathIfBelow({ spec }: Pick<PersistentVolume, 'spec'>, sharePath: string): VolumePath | undefined {
  return spec.nfs && componentsBelow(path.posix.normalize(spec.nfs.path), sharePath);
}

/** The directory and all above it. */
export function withParents(path: VolumePath): VolumePath[] {
  return path.map((_name, index) => path.slice(0, index + 1));
}

/** How two paths lie to each other, seen from the first. */
export function relation(path_: VolumePath, other: VolumePath): 'same' | 'inside' | 'above' | 'apart' {
  const common = Math.min(path_.length, other.length);
  for (let index = 0; index < common; index++) if (path_[index] !== other[index]) return 'apart';
  if (path_.length === other.length) return 'same';
  return other.length > path_.length ? 'inside' : 'above';
}
