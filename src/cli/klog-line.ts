import { goQuote } from '../base/go-quote.ts';
import { multiLineFields } from '../base/logger.ts';

/** Fields of a JSON line that the header or the message of a text line tells. */
const headerFields = new Set(['level', 'v', 'ts', 'caller', 'msg', 'raw']);

const severityLetters = new Map([
  ['warn', 'W'],
  ['error', 'E'],
  ['fatal', 'F'],
]);

/**
 * A JSON log line as a klog text line: `Lmmdd hh:mm:ss.uuuuuu <pid> <file>:<line>] "message" key="value"`, in local
 * time. Numbers, booleans and null stand unquoted, objects as JSON. The result holds no line break but its last, except
 * in the fields that are made to be copied: klog's form for those, with two spaces before each line.
 *
 * @see klog, "Log line format".
 */
export function klogLine(json: string, pid: number = process.pid): string {
  const record = JSON.parse(json, keepDigits as Parameters<typeof JSON.parse>[1]) as Record<string, unknown>;
  let line = `${header(record, pid)} ${message(record)}`;
  for (const [key, value] of Object.entries(record)) {
    if (!headerFields.has(key)) line += ` ${key}=${fieldText(key, value)}`;
  }
  return `${line}\n`;
}

/** Volume sizes exceed what a JavaScript number holds exactly: such integers stay BigInt. */
function keepDigits(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  return /^-?[0-9]+$/.test(context.source ?? '') ? BigInt(context.source ?? 0) : value;
}

function header(record: Record<string, unknown>, pid: number): string {
  const milliseconds = Number(record['ts']);
  const time = new Date(milliseconds);
  const micros = Math.floor((milliseconds - Math.floor(milliseconds)) * 1000);
  const day = two(time.getMonth() + 1) + two(time.getDate());
  const second = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  const fraction = String(time.getMilliseconds()).padStart(3, '0') + String(micros).padStart(3, '0');
  const letter = severityLetters.get(String(record['level'])) ?? 'I';
  const caller = String(record['caller']).replace(/^.*[/\\]/, '');
  return `${letter}${day} ${second}.${fraction} ${String(pid).padStart(7)} ${caller}]`;
}

function two(part: number): string {
  return String(part).padStart(2, '0');
}

function message(record: Record<string, unknown>): string {
  const text = String(record['msg']);
  return record['raw'] === true ? singleLine(text) : goQuote(text);
}

/** The text on one line: control characters are escaped, quotes and letters of any script stay as they are. */
export function singleLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (character) => goQuote(character).slice(1, -1));
}

function fieldText(key: string, value: unknown): string {
  if (!multiLineFields.has(key) || typeof value !== 'string') return valueText(value);
  return `<\n  ${value.replaceAll('\n', '\n  ')}\n >`;
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return goQuote(value);
  if (typeof value === 'bigint') return value.toString();
  return JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? part.toString() : part));
}
