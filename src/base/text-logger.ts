import { inspect } from 'node:util';
import { type Logger, multiLineFields } from './logger.ts';
import { maxTextChars, shortValue } from './short-value.ts';
import { writeStandardError } from './standard-error.ts';

/** The levels of a logger, the most severe first. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace';

const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug', 'trace'];

/** What is written, and where. */
export interface TextLoggerOptions {
  /** The least severe level that is written. Default `info`. */
  level?: LogLevel;
  /** Takes each finished line, with its line break. Default: standard error. */
  write?: (line: string) => void;
}

/**
 * A logger for people at a terminal: `12:30:00.250 info  Storage deleted volume=pvc-1`, one line each, but for an RBAC
 * rule to copy. Errors come last and give their message as it is, but for control characters; at level `trace` they give
 * their stack.
 */
export function textLogger({ level = 'info', write = writeStandardError }: TextLoggerOptions = {}): Logger {
  const shown = levels.slice(0, levels.indexOf(level) + 1);
  const withFields = (inherited: object): Logger => {
    const at =
      (name: LogLevel) =>
      (fields: object, message: string): void => {
        if (!shown.includes(name)) return;
        const time = new Date().toISOString().slice(11, 23);
        const given = Object.entries({ ...inherited, ...fields }).filter(([, value]) => value !== undefined);
        const isError = ([, value]: [string, unknown]): boolean => value instanceof Error;
        const details = [...given.filter((field) => !isError(field)), ...given.filter(isError)].map(
          ([key, value]) => ` ${key}=${fieldText(key, value, level === 'trace')}`,
        );
        write(`${time} ${name.padEnd(5)} ${singleLine(message)}${details.join('')}\n`);
      };
    return {
      error: at('error'),
      warn: at('warn'),
      info: at('info'),
      debug: at('debug'),
      trace: at('trace'),
      child: (fields) => withFields({ ...inherited, ...fields }),
    };
  };
  return withFields({});
}

/** The default logger of the library: warnings and errors, on standard error. */
export const warningLogger: Logger = textLogger({ level: 'warn' });

function fieldText(key: string, value: unknown, withStacks: boolean): string {
  if (!multiLineFields.has(key) || typeof value !== 'string') return valueText(value, withStacks);
  return `\n  ${value.replaceAll('\n', '\n  ')}`;
}

function valueText(value: unknown, withStacks: boolean): string {
  if (value instanceof Error)
    return withStacks ? JSON.stringify(short(value.stack ?? value.message)) : plainText(short(value.message));
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? short(value) : JSON.stringify(short(value));
  return singleLine(inspect(value, { breakLength: Infinity, depth: 4 })); // bigints and secrets print, too
}

function short(text: string): string {
  return shortValue(text, maxTextChars);
}

/** The text of an error without control characters, which could move a terminal's cursor. */
function plainText(text: string): string {
  return singleLine(text).replaceAll(/\p{Cc}/gu, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function singleLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ');
}
