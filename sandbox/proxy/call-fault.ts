/** What goes wrong with calls to a driver, as `--fault` and its file say it. */
import { durationMs } from '../../src/base/go-duration.ts';
import { type CodeName, isCodeName } from '../hostpath/call-error.ts';
import { csiServices } from '../csi-services.ts';

/** What is done with a call. */
export type FaultAction =
  /** The driver gets the call, and nobody its response. */
  | { readonly kind: 'drop' }
  /** The call reaches the driver later. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The driver's response comes later. */
  | { readonly kind: 'late'; readonly ms: number }
  /** The call fails without reaching the driver. */
  | { readonly kind: 'code'; readonly code: CodeName }
  /** The driver gets the call, and the connection ends instead of its response. */
  | { readonly kind: 'cut' }
  /** The driver's response comes once this is over; no flag says so. */
  | { readonly kind: 'hold'; readonly until: Promise<unknown> }
  /** The driver gets the call, and is killed at once. */
  | { readonly kind: 'kill' };

export interface CallFault {
  /** Name of the call, such as `CreateVolume`; `*`: all. */
  readonly method: string;
  readonly action: FaultAction;
  /** How many calls are left to spoil, the next first; with `kill`: which of the next calls it is, and no other. */
  left: number;
}

/** A fault that cannot be understood; the message names what is accepted. */
export class CallFaultError extends Error {
  override readonly name = 'CallFaultError';
}

const form = 'METHOD:ACTION[:COUNT], such as CreateVolume:drop:1';
const actions = 'drop, delay=DURATION, late=DURATION, code=CODE, cut or kill';

/** @throws {CallFaultError} */
export function parseFault(text: string): CallFault {
  const [method = '', action = '', count, ...more] = text.trim().split(':');
  if (action === '' || more.length > 0) throw new CallFaultError(`${JSON.stringify(text)} is not ${form}`);
  const known = ['*', ...methodNames()];
  if (!known.includes(method)) {
    throw new CallFaultError(`${JSON.stringify(method)} is no call of CSI: it must be one of ${known.join(', ')}`);
  }
  return { method, action: parseAction(action), left: parseCount(count, action === 'kill' ? 1 : Infinity) };
}

/** One fault in each line; empty lines and those with `#` in front count for nothing. @throws {CallFaultError} */
export function parseFaults(text: string): CallFault[] {
  return text
    .split('\n')
    .filter((line) => !/^\s*(#|$)/.test(line))
    .map(parseFault);
}

function parseAction(text: string): FaultAction {
  const [kind = '', value] = text.split('=');
  if (value === undefined && (kind === 'drop' || kind === 'cut' || kind === 'kill')) return { kind };
  if (kind === 'code' && isCodeName(value)) return { kind, code: value };
  if ((kind === 'delay' || kind === 'late') && value !== undefined) return { kind, ms: parseDuration(value) };
  throw new CallFaultError(`${JSON.stringify(text)} is no action: it must be ${actions}`);
}

function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined && ms >= 0) return ms;
  throw new CallFaultError(`${JSON.stringify(text)} is no duration such as 5s`);
}

function parseCount(text: string | undefined, absent: number): number {
  if (text === undefined) return absent;
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new CallFaultError(`${JSON.stringify(text)} is no count of calls, which is a whole number from 1`);
}

function methodNames(): string[] {
  return Object.values(csiServices()).flatMap((service) => Object.keys(service));
}
