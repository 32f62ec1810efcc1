/** CSI spec, "Size Limits". */
import type { StringMap } from './csi-messages.ts';

export const maxStringBytes = 128;
export const maxMapBytes = 4096;

/** Bytes of all keys and values. */
export function mapBytes(map: StringMap = {}): number {
  return Object.entries(map).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
}
