import type { Logger } from '../../../src/base/logger.ts';

export interface LogLine {
  level: 'error' | 'warn' | 'info' | 'debug' | 'trace';
  fields: object;
  message: string;
}

/** A logger that keeps its lines, those of its children included. */
export function recordedLogger(lines: LogLine[], inherited: object = {}): Logger {
  const at =
    (level: LogLine['level']) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields: { ...inherited, ...fields }, message });
    };
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    child: (fields) => recordedLogger(lines, { ...inherited, ...fields }),
  };
}
