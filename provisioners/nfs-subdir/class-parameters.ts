/** What a class says: where its volumes lie, and what becomes of them. Keys are compared exactly; others are ignored. */
import { type ClassParameters, readParameters, type StorageClass } from '../../src/index.ts';

/** What becomes of the directory of a volume that is deleted. */
export type Fate = 'remove' | 'archive' | 'retain';

function parametersOf(storageClass: StorageClass): ClassParameters {
  return readParameters(storageClass, { keys: ['pathPattern', 'onDelete', 'archiveOnDelete'], strict: false });
}

/** The template of the directories' paths. Default: empty, each volume gets a directory of its own. */
export function pathPatternOf(storageClass: StorageClass): string {
  return parametersOf(storageClass).text('pathPattern') ?? '';
}

/**
 * `onDelete` where it is `delete` or `retain`; else what `archiveOnDelete` says, which is true by default.
 *
 * @throws {ParameterError} when `archiveOnDelete` counts and is no boolean.
 */
export function fateOf(storageClass: StorageClass): Fate {
  const parameters = parametersOf(storageClass);
  const onDelete = parameters.text('onDelete');
  if (onDelete === 'delete') return 'remove';
  if (onDelete === 'retain') return 'retain';
  return (parameters.boolean('archiveOnDelete') ?? true) ? 'archive' : 'remove';
}
