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
