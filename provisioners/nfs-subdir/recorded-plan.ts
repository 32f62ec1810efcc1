/** What is recorded of a volume before its directory is made. */
import { pathComponents, type PersistentVolume, type Plan, ProvisionError } from '../../src/index.ts';
import { reservedReason } from './reserved-names.ts';
import type { VolumePath } from './volume-path.ts';

export interface VolumePlan extends Plan {
  /** Of the directory, from the root of the export. */
  readonly path: VolumePath;
  /** There was a directory before the volume was planned: what is in it is not ours to remove. */
  readonly wasThere: boolean;
  readonly claimUid: string;
  readonly className: string;
  /** The volume as it will be saved. */
  readonly volume: PersistentVolume;
}

/**
 * The plan as it was made. It is read from the cluster: another version may have written it, or somebody edited it.
 *
 * @throws {ProvisionError} which leaves it to an operator, when it cannot be used.
 */
export function recordedPlan(plan: Plan): VolumePlan {
  const { path, wasThere, claimUid, className, volume } = plan;
  if (!isPath(path)) fail('path', path);
  if (typeof wasThere !== 'boolean') fail('wasThere', wasThere);
  if (typeof claimUid !== 'string') fail('claimUid', claimUid);
  if (typeof className !== 'string') fail('className', className);
  const { metadata, spec } = (volume ?? {}) as { metadata?: { name?: unknown }; spec?: { nfs?: { path?: unknown } } };
  if (typeof metadata?.name !== 'string' || typeof spec?.nfs?.path !== 'string') fail('volume', volume);
  return plan as VolumePlan;
}

function isPath(path: unknown): path is VolumePath {
  return Array.isArray(path) && path.length > 0 && path.every(isOneName) && reservedReason(path) === undefined;
}

function isOneName(name: unknown): boolean {
  try {
    return typeof name === 'string' && pathComponents(name).join('/') === name && !name.includes('/');
  } catch {
    return false;
  }
}

function fail(field: string, value: unknown): never {
  const shown = value === undefined ? 'missing' : JSON.stringify(value).slice(0, 80);
  throw new ProvisionError(
    `the recorded plan of the volume cannot be used: its field ${field} is ${shown}. It was edited, or written by another version`,
    { state: 'no-change', afterUnclear: 'undecidable' },
  );
}
