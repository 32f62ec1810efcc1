import { inspect } from 'node:util';
import { goQuote } from '../base/go-quote.ts';
import { multiLineFields } from '../base/logger.ts';
import { maxTextChars, shortValue } from '../base/short-value.ts';

/** One log line before it has a format. */
export interface LogRecord {
  level: LogRecordLevel;
  /** Microseconds since the epoch. */
  epochMicros: number;
  /** `folder/file.ts:line` of the call that logs. */
  caller: string;
  message: string;
  /** Fields of the logger itself, printable. */
  inherited: Readonly<Record<string, unknown>>;
  /** Fields of this line, printable. */
  fields: Readonly<Record<string, unknown>>;
}

export type LogRecordLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/**
 * The fields with their errors as texts, which JSON would print as `{}`. The causes of an error follow its message
 * unless it holds them already. A text above 65,536 characters is truncated.
 *
 * @param withStacks - adds `<key>Stack` behind each error.
 */
export function printableFields(fields: object, withStacks: boolean): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields) as [string, unknown][]) {
    if (value === undefined) continue;
    if (typeof value === 'string') result[key] = shortValue(value, maxTextChars);
    else if (!(value instanceof Error)) result[key] = value;
    else {
      result[key] = shortValue(errorText(value), maxTextChars);
      if (withStacks && value.stack !== undefined) result[`${key}Stack`] = shortValue(value.stack, maxTextChars);
    }
  }
  return result;
}

function errorText(error: Error): string {
  let message = error.message || error.name;
  let cause = error.cause;
  for (let depth = 0; depth < 8 && cause instanceof Error; depth++, cause = cause.cause) {
    if (!message.includes(wordsOf(cause))) message += `: ${cause.message}`;
  }
  return message;
}

/** Errors of gRPC hold the words of the other side in `details`, and have a number and a name before them in `message`. */
function wordsOf(error: Error & { details?: unknown }): string {
  return typeof error.details === 'string' ? error.details : error.message;
}

const severityLetters: Readonly<Record<LogRecordLevel, string>> = {
  trace: 'I',
  debug: 'I',
  info: 'I',
  warn: 'W',
  error: 'E',
  fatal: 'F',
};

/** How a text line is written. */
export interface KlogLineOptions {
  /** Prints the message without quotes and escapes; it stays one line. Default false. */
  plainMessage?: boolean;
  /** Default: that of this process. */
  pid?: number;
}

/**
 * A log line as klog text: `Lmmdd hh:mm:ss.uuuuuu <pid> <file>:<line>] "message" key="value"`, in local time. Numbers,
 * booleans and null are unquoted, objects as JSON. The result holds no line break but its last, except in the fields
 * that are made to be copied: klog's form for those, with two spaces before each line.
 *
 * @see klog, "Log line format".
 */
export function klogLine(record: LogRecord, { plainMessage = false, pid = process.pid }: KlogLineOptions = {}): string {
  const { message, inherited, fields } = record;
  let line = `${header(record, pid)} ${plainMessage ? singleLine(message) : goQuote(message)}`;
  for (const [key, value] of Object.entries({ ...inherited, ...fields })) line += ` ${key}=${fieldText(key, value)}`;
  return `${line}\n`;
}

function header({ level, epochMicros, caller }: LogRecord, pid: number): string {
  const time = new Date(Math.floor(epochMicros / 1000));
  const day = two(time.getMonth() + 1) + two(time.getDate());
  const second = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  const fraction = String(epochMicros % 1_000_000).padStart(6, '0');
  const file = caller.slice(Math.max(caller.lastIndexOf('/'), caller.lastIndexOf('\\')) + 1);
  return `${severityLetters[level]}${day} ${second}.${fraction} ${String(pid).padStart(7)} ${file}]`;
}

function two(part: number): string {
  return part < 10 ? `0${part}` : String(part);
}

/** The text on one line: control characters are escaped, quotes and letters of any script stay as they are. */
export function singleLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (character) => goQuote(character).slice(1, -1));
}

function fieldText(key: string, value: unknown): string {
  if (typeof value !== 'string') return valueText(value);
  return multiLineFields.has(key) ? `<\n  ${value.replaceAll('\n', '\n  ')}\n >` : goQuote(value);
}

/** Objects that JSON prints as a text, such as secrets, are quoted as texts are. */
function valueText(value: unknown): string {
  const json = jsonValue(value);
  return json.startsWith('"') ? goQuote(JSON.parse(json) as string) : json;
}

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
