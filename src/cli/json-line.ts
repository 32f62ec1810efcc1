import { inspect } from 'node:util';
import type { LogRecord, LogRecordLevel } from './log-record.ts';

/** The verbosity klog's JSON form gives a line of each level. Errors have none. */
const verbosities: Readonly<Record<LogRecordLevel, number | undefined>> = {
  trace: 5,
  debug: 2,
  info: 0,
  warn: 0,
  error: undefined,
  fatal: 0,
};

/**
 * A log line as one JSON object: `level`, `v`, `ts` (milliseconds with microseconds behind the point), the logger's
 * fields, `caller`, the line's fields, `msg`.
 *
 * @see Kubernetes, "System Logs", "JSON log format".
 */
export function jsonLine({ level, epochMicros, caller, message, inherited, fields }: LogRecord): string {
  const v = verbosities[level];
  const micros = String(epochMicros % 1000).padStart(3, '0');
  return (
    `{"level":"${level}"${v === undefined ? '' : `,"v":${v}`},"ts":${Math.floor(epochMicros / 1000)}.${micros}` +
    `${members(inherited)},"caller":${JSON.stringify(caller)}${members(fields)},"msg":${JSON.stringify(message)}}\n`
  );
}

function members(fields: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (const [key, value] of Object.entries(fields)) text += `,${JSON.stringify(key)}:${jsonValue(value)}`;
  return text;
}

/** A field's value as JSON. Never throws: what has no JSON form, such as an object within itself, is described. */
export function jsonValue(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number') return JSON.stringify(value);
  if (typeof value === 'bigint') return value.toString();
  try {
    const text: unknown = JSON.stringify(value, bigIntAsText);
    if (typeof text === 'string') return text;
  } catch {
    // described below
  }
  return JSON.stringify(inspect(value, { breakLength: Infinity }));
}

/** JSON numbers of many readers are doubles: inside of objects, integers are texts, as in protobuf's JSON. */
function bigIntAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
