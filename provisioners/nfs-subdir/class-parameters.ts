/** What a class says: where its volumes lie, and what becomes of them. Keys are compared exactly; others are ignored. */
import {
  type ClassParameters,
  durationMs,
  ParameterError,
  readParameters,
  type StorageClass,
} from '../../src/index.ts';

/** What becomes of the directory of a volume that is deleted. */
export type Fate = 'remove' | 'archive' | 'retain';

const known = ['pathPattern', 'onDelete', 'archiveOnDelete', 'archiveDirectory', 'archiveRetention'] as const;

function parametersOf(storageClass: StorageClass): ClassParameters {
  return readParameters(storageClass, { keys: [...known], strict: false });
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

/**
 * The folder in the root of the export that archives go to. Default: the root itself, as with the original.
 *
 * @throws {ParameterError} for a name that a volume could have.
 */
export function archiveDirectoryOf(storageClass: StorageClass): string | undefined {
  const text = parametersOf(storageClass).text('archiveDirectory');
  if (text === undefined || /^\.archived[-_a-zA-Z0-9]{0,60}$/.test(text)) return text;
  throw new ParameterError(
    `invalid value for parameter archiveDirectory: ${JSON.stringify(text)} must be .archived, or that followed by letters, digits, - or _: no volume can have such a name`,
  );
}

/** Whether no volume may have a name in the root of the export, since archives are kept under such names. */
export function isArchiveDirectory(name: string): boolean {
  return name.toLowerCase().startsWith('.archived');
}

/**
 * How long archives are kept, in milliseconds. Default: undefined, for ever.
 *
 * @throws {ParameterError} for anything but a duration above 0.
 */
export function archiveRetentionOf(storageClass: StorageClass): number | undefined {
  const text = parametersOf(storageClass).text('archiveRetention');
  if (text === undefined) return undefined;
  const [, days] = /^([0-9]{1,6})d$/.exec(text) ?? [];
  const ms = days === undefined ? durationMs(text) : Number(days) * 86_400_000;
  if (ms !== undefined && ms > 0) return ms;
  throw new ParameterError(
    `invalid value for parameter archiveRetention: ${JSON.stringify(text)} must be a duration above 0, such as 720h or 30d`,
  );
}

/** Reports when a volume is created what would otherwise fail only when it is deleted. @throws {ParameterError} */
export function checkArchiveParameters(storageClass: StorageClass): void {
  archiveDirectoryOf(storageClass);
  archiveRetentionOf(storageClass);
}
