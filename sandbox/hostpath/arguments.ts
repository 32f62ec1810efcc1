/** What every call checks of its arguments: missing and malformed ones are INVALID_ARGUMENT. */
import { CallError } from './call-error.ts';
import type { AccessType } from './hostpath-state.ts';
import type { CapacityRange, VolumeCapability } from './messages.ts';

/** CSI spec, "Size Limits". */
const longestStringBytes = 128;

/** @throws {CallError} `INVALID_ARGUMENT` when the field is absent or empty. */
export function required<T>(value: T | null | undefined, field: string): T {
  if (value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)) {
    throw new CallError('INVALID_ARGUMENT', `${field} is required`);
  }
  return value;
}

/** A name for a new thing: required, at most 128 bytes, no control characters (CSI spec, "CreateVolume", `name`). */
export function requiredName(value: string | undefined): string {
  const name = required(value, 'name');
  if (Buffer.byteLength(name) > longestStringBytes) {
    throw new CallError('INVALID_ARGUMENT', `name is longer than ${longestStringBytes} bytes`);
  }
  if (/\p{Cc}/u.test(name)) throw new CallError('INVALID_ARGUMENT', 'name has control characters');
  return name;
}

const modes = new Set([
  'SINGLE_NODE_WRITER',
  'SINGLE_NODE_READER_ONLY',
  'MULTI_NODE_READER_ONLY',
  'MULTI_NODE_SINGLE_WRITER',
  'MULTI_NODE_MULTI_WRITER',
]);
const singleNodeMultiWriterModes = new Set(['SINGLE_NODE_SINGLE_WRITER', 'SINGLE_NODE_MULTI_WRITER']);

/** A capability in the driver's own words. */
export interface Access {
  type: AccessType;
  mode: string;
}

/** Checks one capability; `multiWriter` is whether SINGLE_NODE_MULTI_WRITER is announced. */
export function readCapability(capability: VolumeCapability | undefined, multiWriter: boolean): Access {
  const { block, mount, access_mode: accessMode } = required(capability, 'volume_capability');
  if (block === undefined && mount === undefined) {
    throw new CallError('INVALID_ARGUMENT', 'volume_capability.access_type is required');
  }
  const mode = accessMode?.mode ?? 'UNKNOWN';
  if (mode === 'UNKNOWN') throw new CallError('INVALID_ARGUMENT', 'volume_capability.access_mode is required');
  if (typeof mode !== 'string' || !(modes.has(mode) || (multiWriter && singleNodeMultiWriterModes.has(mode)))) {
    throw new CallError('INVALID_ARGUMENT', `access mode ${mode} is not supported`);
  }
  return { type: block === undefined ? 'mount' : 'block', mode };
}

/** The access type that all capabilities share; at least one must be given. */
export function readCapabilities(capabilities: VolumeCapability[] | undefined, multiWriter: boolean): AccessType {
  const types = required(capabilities, 'volume_capabilities').map((each) => readCapability(each, multiWriter).type);
  const [type] = types;
  if (type === undefined || types.some((other) => other !== type)) {
    throw new CallError('INVALID_ARGUMENT', 'a volume is either a file system or a block device, not both');
  }
  return type;
}

/**
 * Reads a capacity range; zero is unset.
 *
 * @throws {CallError} `INVALID_ARGUMENT` below zero, `OUT_OF_RANGE` for a limit below what is required.
 */
export function readCapacityRange(range: CapacityRange | null | undefined): {
  requiredBytes: bigint;
  limitBytes: bigint | undefined;
} {
  const requiredBytes = BigInt(range?.required_bytes ?? 0);
  const limitBytes = BigInt(range?.limit_bytes ?? 0);
  if (requiredBytes < 0n || limitBytes < 0n) {
    throw new CallError('INVALID_ARGUMENT', 'capacity_range must not be negative');
  }
  if (limitBytes > 0n && limitBytes < requiredBytes) {
    throw new CallError('OUT_OF_RANGE', `limit_bytes ${limitBytes} is below required_bytes ${requiredBytes}`);
  }
  return { requiredBytes, limitBytes: limitBytes === 0n ? undefined : limitBytes };
}
