import pino from 'pino';
import type { Logger } from '../base/logger.ts';
import { klogLine } from './klog-line.ts';

/** What `--logging-format` and `-v` ask for. */
export interface LoggingConfig {
  readonly format: 'text' | 'json';
  /** 0 info, 2 and up debug, 5 and up trace. Errors and warnings always show. */
  readonly verbosity: number;
}

/** What takes the finished lines. Each `write` is one whole line with its line break. */
export interface LogSink {
  write(line: string): void;
}

/** The logger of a process: adds the line a process may end with. */
export interface ProcessLogger extends Logger {
  /** The last line before the end, `F` or `E` in text. Without fields the text form prints it unquoted. */
  lastLine(severity: 'error' | 'fatal', message: string, fields?: object): void;
}

/** `v` of the JSON form and the severity letter of the text form, per level. Errors carry no `v`. */
const levels = {
  trace: { level: 'trace', v: 5 },
  debug: { level: 'debug', v: 2 },
  info: { level: 'info', v: 0 },
  warn: { level: 'warn', v: 0 },
  error: { level: 'error' },
  fatal: { level: 'fatal', v: 0 },
} as const;

type LevelName = keyof typeof levels;

/**
 * Standard error. The lines of one turn of the event loop are written together, synchronously, and what is left when
 * the process ends or crashes: none is lost save to SIGKILL. A reader that has gone away is ignored; logging must never
 * end a provisioner.
 */
export function standardError(): LogSink {
  const destination = pino.destination({ dest: 2, sync: true });
  destination.on('error', () => undefined);
  let waiting = '';
  const flush = (): void => {
    const lines = waiting;
    waiting = '';
    if (lines !== '') destination.write(lines);
  };
  process.on('exit', flush);
  return {
    write: (line) => {
      if (waiting === '') setImmediate(flush);
      waiting += line;
    },
  };
}

/**
 * The logger behind every floor: pino, as klog text or as JSON lines. Lines are single lines whatever the values
 * hold; secrets print as redacted because they travel as `SecretString`.
 *
 * @param options.sink - where lines go; default standard error.
 * @see Kubernetes, "System Logs", and klog's header form.
 */
export function createLogger(options: LoggingConfig & { sink?: LogSink }): ProcessLogger {
  const sink = options.sink ?? standardError();
  const text: LogSink = { write: (line) => sink.write(klogLine(line)) };
  const level = options.verbosity >= 5 ? 'trace' : options.verbosity >= 2 ? 'debug' : 'info';
  const withStacks = level === 'trace';
  const now = microsecondClock();
  const root = pino(
    {
      level,
      base: null,
      timestamp: () => `,"ts":${now()}`,
      formatters: {
        level: (name) => levels[name as LevelName],
        log: (fields) => printable(fields, withStacks),
        bindings: (fields) => printable(fields, false),
      },
    },
    options.format === 'text' ? text : sink,
  );
  return new PinoLogger(root, options.format === 'text');
}

/**
 * Makes a clock of milliseconds since the epoch with microseconds behind the point, as in klog's JSON. The wall clock
 * of JavaScript is coarse and the fine one never follows corrections, so the fine one is set anew when they differ.
 */
function microsecondClock(): () => string {
  let offset = performance.timeOrigin;
  return () => {
    const wall = Date.now();
    const monotonic = performance.now();
    if (Math.floor(offset + monotonic) !== wall) offset = wall - monotonic;
    return (offset + monotonic).toFixed(3);
  };
}

/** Errors as texts: JSON would print them as `{}`. Causes are told unless the message already holds them. */
function printable(fields: Record<string, unknown>, withStacks: boolean): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (!(value instanceof Error)) result[key] = value;
    else {
      result[key] = errorText(value);
      if (withStacks && value.stack !== undefined) result[`${key}Stack`] = value.stack;
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

/** The bundle gives each call its `caller`; see `scripts/inline-callers.ts`. */
class PinoLogger implements ProcessLogger {
  readonly #pino: pino.Logger;
  readonly #asText: boolean;

  constructor(logger: pino.Logger, asText: boolean) {
    this.#pino = logger;
    this.#asText = asText;
  }

  error(fields: object, message: string, caller?: string): void {
    this.#log('error', fields, message, caller);
  }

  warn(fields: object, message: string, caller?: string): void {
    this.#log('warn', fields, message, caller);
  }

  info(fields: object, message: string, caller?: string): void {
    this.#log('info', fields, message, caller);
  }

  debug(fields: object, message: string, caller?: string): void {
    this.#log('debug', fields, message, caller);
  }

  trace(fields: object, message: string, caller?: string): void {
    this.#log('trace', fields, message, caller);
  }

  lastLine(severity: 'error' | 'fatal', message: string, fields: object = {}, caller?: string): void {
    const unstructured = this.#asText && Object.keys(fields).length === 0 ? { raw: true } : {};
    this.#log(severity, { ...unstructured, ...fields }, message, caller);
  }

  child(fields: Record<string, unknown>): Logger {
    return new PinoLogger(this.#pino.child(fields), this.#asText);
  }

  #log(level: LevelName, fields: object, message: string, caller: string | undefined): void {
    if (!this.#pino.isLevelEnabled(level)) return;
    // pino's fatal would also end a worker's streams; its level is used, never its method's side effects
    this.#pino[level]({ caller: caller ?? callerOfLogger(), ...fields }, message);
  }
}

/** `folder/file.ts:line` of the line that logs: behind `#log` and the method it is called by. */
function callerOfLogger(): string {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 3;
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, callerOfLogger);
  Error.stackTraceLimit = before;
  const frame = /([^/\\(]+[/\\])?([^/\\(]+):(\d+):\d+\)?$/.exec(holder.stack ?? '');
  return frame === null ? 'unknown:0' : `${frame[1] ?? ''}${frame[2] ?? ''}:${frame[3] ?? '0'}`;
}
