import { writeSync } from 'node:fs';
import { inspect } from 'node:util';
import { type Logger, multiLineFields } from './logger.ts';

/** The levels of a logger, the gravest first. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace';

const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug', 'trace'];

/** What is written, and where. */
export interface TextLoggerOptions {
  /** The least grave level that is written. Default `info`. */
  level?: LogLevel;
  /** Takes each finished line, with its line break. Default: standard error. */
  write?: (line: string) => void;
}

/**
 * A logger for people at a terminal: `12:30:00.250 info  Storage deleted volume=pvc-1`, one line each, but for an RBAC
 * rule to copy. Errors give their message, with the stack at level `trace`.
 */
export function textLogger({ level = 'info', write = writeStandardError }: TextLoggerOptions = {}): Logger {
  const shown = levels.slice(0, levels.indexOf(level) + 1);
  const withFields = (inherited: object): Logger => {
    const at =
      (name: LogLevel) =>
      (fields: object, message: string): void => {
        if (!shown.includes(name)) return;
        const time = new Date().toISOString().slice(11, 23);
        const details = Object.entries({ ...inherited, ...fields })
          .filter(([, value]) => value !== undefined)
          .map(([key, value]) => ` ${key}=${fieldText(key, value, level === 'trace')}`);
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

function fieldText(key: string, value: unknown, withStacks: boolean): string {
  if (!multiLineFields.has(key) || typeof value !== 'string') return valueText(value, withStacks);
  return `\n  ${value.replaceAll('\n', '\n  ')}`;
}

function valueText(value: unknown, withStacks: boolean): string {
  if (value instanceof Error) return JSON.stringify((withStacks ? value.stack : undefined) ?? value.message);
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  return singleLine(inspect(value, { breakLength: Infinity, depth: 4 })); // bigints and secrets print, too
}

function singleLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ');
}

function writeStandardError(line: string): void {
  try {
    writeSync(2, line);
  } catch {
    // the reader has gone away: logging must never end a provisioner
  }
}
