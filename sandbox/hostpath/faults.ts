import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { CallError, isCodeName } from './call-error.ts';
import type { CodeName } from './call-error.ts';

/** One entry of `faults.json`: what goes wrong with calls of a method. */
export interface Fault {
  /** The call's name, such as `CreateVolume`. */
  method: string;
  /** The status to fail with; absent: the call succeeds, only late (or never, with `hang`). */
  code?: CodeName;
  message?: string;
  /** How many calls are left to spoil; absent: all. Counted down in the file. */
  times?: number;
  /** Waits before the work, or with `after` behind it. Goes on when the caller has given up. */
  delayMs?: number;
  /** Waits where `delayMs` would, until the file has no such entry of the method any more, used up or not. */
  hold?: boolean;
  /** Never responds. */
  hang?: boolean;
  /** Does the work first: the caller learns of a failure that was none. */
  after?: boolean;
  /** Leaves calls alone that name a volume which is there. */
  unlessThere?: boolean;
  /** Only calls with these class parameters; absent: all. So claims of different classes fail differently. */
  parameters?: Record<string, string>;
  /** Only calls that name this volume; absent: all. */
  volumeId?: string;
  /** The size in the answer of CreateVolume, in bytes, whatever the volume has. */
  capacityBytes?: number;
}

/** What of a request decides which faults apply. */
interface FaultyRequest {
  parameters?: Record<string, string>;
  volume_id?: string;
}

/**
 * Takes the first fault that applies to a call, counting it down. Without the file, or an entry with calls left, there
 * is none. Reading and writing back happen in one turn, so that parallel calls never take the same count.
 *
 * @param file - read again at every call, so that a test may change it at any time (by a rename, to be safe).
 * @param methods - the calls there are.
 * @param request - of the call.
 * @throws {CallError} `INTERNAL` when the file cannot be understood: a test must not pass on a fault nobody injected.
 */
export function takeFault(
  file: string,
  method: string,
  methods: ReadonlySet<string>,
  request: FaultyRequest = {},
): Fault | undefined {
  const faults = readFaults(file, methods);
  const fault = faults.find((entry) => entry.method === method && entry.times !== 0 && isFor(entry, request));
  if (fault?.times !== undefined) {
    fault.times -= 1;
    writeFileSync(`${file}.new`, JSON.stringify(faults, null, 2) + '\n');
    renameSync(`${file}.new`, file);
  }
  return fault;
}

function isFor({ volumeId, parameters: wanted }: Fault, { volume_id: named, parameters = {} }: FaultyRequest): boolean {
  if (volumeId !== undefined && volumeId !== named) return false;
  return Object.entries(wanted ?? {}).every(([key, value]) => parameters[key] === value);
}

/** Whether the file still holds calls of the method. @throws {CallError} as `takeFault`. */
export function isHeld(file: string, method: string, methods: ReadonlySet<string>): boolean {
  return readFaults(file, methods).some((entry) => entry.method === method && entry.hold === true);
}

function readFaults(file: string, methods: ReadonlySet<string>): Fault[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return parseFaults(file, text, methods);
}

function parseFaults(file: string, text: string, methods: ReadonlySet<string>): Fault[] {
  const refuse = (why: string, cause?: unknown): never => {
    throw new CallError('INTERNAL', `${file}: ${why}`, { cause });
  };
  let faults: unknown;
  try {
    faults = JSON.parse(text);
  } catch (error) {
    return refuse('not JSON', error);
  }
  if (!Array.isArray(faults)) return refuse('not a list');
  for (const entry of faults as Record<string, unknown>[]) {
    const count = (value: unknown): boolean => value === undefined || (Number.isInteger(value) && Number(value) >= 0);
    const flag = (value: unknown): boolean => value === undefined || typeof value === 'boolean';
    const { method } = entry;
    if (typeof method !== 'string') return refuse('an entry has no method');
    if (!methods.has(method)) return refuse(`there is no call ${method}`);
    if (entry['code'] !== undefined && !isCodeName(entry['code'])) return refuse('an entry has an unknown code');
    if (!counts.every((key) => count(entry[key]))) return refuse(`${counts.join(', ')} are whole numbers`);
    if (!isText(entry['volumeId'])) return refuse('volumeId is a text');
    if (!isTexts(entry['parameters'])) return refuse('parameters are texts by name');
    if (!flags.every((key) => flag(entry[key]))) return refuse(`${flags.join(', ')} are true or false`);
    const strange = Object.keys(entry).find((key) => !faultKeys.has(key));
    if (strange !== undefined) return refuse(`an entry has the unknown field ${strange}`);
  }
  return faults as Fault[];
}

const flags = ['hold', 'hang', 'after', 'unlessThere'];
const counts = ['times', 'delayMs', 'capacityBytes'];
const faultKeys = new Set(['method', 'code', 'message', 'volumeId', 'parameters', ...counts, ...flags]);

function isText(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

function isTexts(value: unknown): boolean {
  if (value === undefined) return true;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((text) => typeof text === 'string');
}
