import { gidRange, ParameterError, readParameters, type StorageClass } from '../../src/index.ts';
import type { Squash } from './ganesha-config.ts';

/** What a class asks of a volume. */
export interface VolumeParameters {
  /** The group of the directory; `allocated`: one of its own for each volume, from `gidMin` to `gidMax`. */
  readonly gid: number | 'allocated' | undefined;
  readonly squash: Squash;
  /** For an annotation; classes have a field of their own now. */
  readonly mountOptions: string;
  /** Volumes of the class that may exist at once; undefined: no limit. */
  readonly maxExports: number | undefined;
}

type Given = ReturnType<typeof readParameters>;

const largestGid = 2 ** 32 - 2;
const keys = ['gid', 'gidMin', 'gidMax', 'rootSquash', 'mountOptions', 'maxExports'];

/**
 * Reads the parameters of a class; keys count in whatever case.
 *
 * @throws {ParameterError} for an unknown parameter and a value that does not fit, and what `gidRange` throws.
 */
export function volumeParameters(storageClass: StorageClass): VolumeParameters {
  const given = readParameters(storageClass, { keys, ignoreCase: true });
  return {
    gid: gidOf(storageClass, given),
    squash: rootSquash(given) ? 'root_id_squash' : 'no_root_squash',
    mountOptions: given.text('mountOptions') ?? '',
    maxExports: maxExports(given.text('maxExports')),
  };
}

function gidOf(storageClass: StorageClass, given: Given): VolumeParameters['gid'] {
  const text = given.text('gid');
  const hasRange = ['gidMin', 'gidMax'].some((key) => given.text(key) !== undefined);
  if (text !== undefined && hasRange) {
    throw new ParameterError('parameter gid excludes gidMin and gidMax: give one group id or a range');
  }
  if (hasRange) {
    gidRange(storageClass); // throws for a bad one
    return 'allocated';
  }
  if (text === undefined || text.toLowerCase() === 'none') return undefined;
  const gid = /^\d{1,20}$/.test(text) ? Number(text) : 0;
  if (gid >= 1 && gid <= largestGid) return gid;
  throw new ParameterError(`invalid value for parameter gid: ${text}. valid values are: 'none' or a non-zero integer`);
}

function rootSquash(given: Given): boolean {
  try {
    return given.boolean('rootSquash') ?? false;
  } catch (error) {
    const value = given.text('rootSquash') ?? '';
    const message = `invalid value for parameter rootSquash: ${value}. valid values are: 'true' or 'false'`;
    throw new ParameterError(message, { cause: error });
  }
}

function maxExports(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new ParameterError(
    `invalid value for parameter maxExports: ${text}. valid values are: whole numbers from 0 to 99999`,
  );
}
