import { compareBytes } from '../base/compare-bytes.ts';
import type { PersistentVolumeClaim } from '../provision/objects.ts';

/**
 * A claim's status the way Go prints the struct, for the one error text that contains it. Fields that are absent on
 * claims that are not bound are printed empty.
 */
export function claimStatusText(status: PersistentVolumeClaim['status']): string {
  const { phase = '', accessModes = [], capacity = {} } = status ?? {};
  const sizes = Object.entries(capacity)
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([name, size]) => `${name}:${size}`);
  return `{${phase} [${accessModes.join(' ')}] map[${sizes.join(' ')}] [] map[] map[] <nil> nil}`;
}
