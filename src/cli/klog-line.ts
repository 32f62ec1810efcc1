import { goQuote } from '../base/go-quote.ts';
import { multiLineFields } from '../base/logger.ts';
import { jsonValue } from './json-line.ts';
import type { LogRecord, LogRecordLevel } from './log-record.ts';

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
