import { gidRange, ProvisionError, type StorageClass } from 'csi-provisioner';
import type { Squash } from './ganesha-config.ts';
import { goBoolean } from './go-boolean.ts';

/** What a class asks of a volume. */
export interface ClassParameters {
  /** The group of the directory; `allocated`: one of its own for each volume, from `gidMin` to `gidMax`. */
  readonly gid: number | 'allocated' | undefined;
  readonly squash: Squash;
  /** For an annotation; classes have a field of their own now. */
  readonly mountOptions: string;
  /** Volumes of the class that may exist at once; undefined: no limit. */
  readonly maxExports: number | undefined;
}

const largestGid = 2 ** 32 - 2;
const known = ['gid', 'gidmin', 'gidmax', 'rootsquash', 'mountoptions', 'maxexports'];

/**
 * Reads the parameters of a class; keys count in whatever case.
 *
 * @throws {ProvisionError} infeasible, for an unknown parameter and a value that does not fit.
 */
export function readParameters(storageClass: StorageClass): ClassParameters {
  const given = new Map<string, string>();
  for (const [key, value] of Object.entries(storageClass.parameters ?? {})) {
    if (!known.includes(key.toLowerCase())) throw refused(`invalid parameter: ${JSON.stringify(key)}`);
    given.set(key.toLowerCase(), value);
  }
  return {
    gid: gidOf(storageClass, given),
    squash: rootSquash(given.get('rootsquash')) ? 'root_id_squash' : 'no_root_squash',
    mountOptions: given.get('mountoptions') ?? '',
    maxExports: maxExports(given.get('maxexports')),
  };
}

function gidOf(storageClass: StorageClass, given: ReadonlyMap<string, string>): ClassParameters['gid'] {
  const text = given.get('gid');
  const hasRange = given.has('gidmin') || given.has('gidmax');
  if (text !== undefined && hasRange) {
    throw refused(`parameter gid excludes gidMin and gidMax: give one group id, or a range of them`);
  }
  if (hasRange) {
    gidRange(storageClass); // throws for a bad one
    return 'allocated';
  }
  if (text === undefined || text.toLowerCase() === 'none') return undefined;
  const gid = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (gid >= 1 && gid <= largestGid) return gid;
  throw refused(`invalid value for parameter gid: ${text}. valid values are: 'none' or a non-zero integer`);
}

function rootSquash(text = 'false'): boolean {
  const value = goBoolean(text);
  if (value !== undefined) return value;
  throw refused(`invalid value for parameter rootSquash: ${text}. valid values are: 'true' or 'false'`);
}

function maxExports(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw refused(`invalid value for parameter maxExports: ${text}. valid values are: whole numbers from 0 to 99999`);
}

function refused(why: string): ProvisionError {
  return new ProvisionError(why, { state: 'finished', infeasible: true });
}
