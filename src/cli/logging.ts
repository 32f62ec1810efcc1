import { formatGoDuration } from '../base/go-duration.ts';
import { goQuote } from '../base/go-quote.ts';
import type { Logger } from '../base/logger.ts';
import { writeStandardError } from '../base/standard-error.ts';
import { failureExit } from '../run/exit.ts';
import type { FlagValues } from './flags.ts';
import {
  jsonLine,
  klogLine,
  type KlogLineOptions,
  type LogRecord,
  type LogRecordLevel,
  printableFields,
} from './log-lines.ts';

/** The values of `--logging-format` and `-v`. */
export interface LoggingConfig {
  readonly format: 'text' | 'json';
  /** 0 info, 2 and up debug, 5 and up trace. Errors and warnings always show. */
  readonly verbosity: number;
}

/** What takes the finished lines. Each `write` is one whole line with its line break. */
interface LogSink {
  write(line: string): void;
}

/** The logger of a process: adds the line a process may end with. */
export interface ProcessLogger extends Logger {
  /** The last line before the end, `F` or `E` in text. Without fields the text form prints it unquoted. */
  lastLine(severity: 'error' | 'fatal', message: string, fields?: object): void;
}

/** The verbosity from which lines of a level show. */
const shownFrom: Readonly<Record<LogRecordLevel, number>> = {
  trace: 5,
  debug: 2,
  info: 0,
  warn: 0,
  error: 0,
  fatal: 0,
};

/**
 * Standard error. The lines of one iteration of the event loop are written together, synchronously, and what is left when
 * the process ends or crashes: none is lost save to SIGKILL.
 */
function standardError(): LogSink {
  let waiting = '';
  const flush = (): void => {
    const lines = waiting;
    waiting = '';
    if (lines !== '') writeStandardError(lines);
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
 * The logger of the program: klog text or JSON lines, each a single line whatever the values hold. Secrets print as
 * redacted because they travel as `SecretString`.
 *
 * @param options.sink - where lines go; default standard error.
 * @see Kubernetes, "System Logs", and klog's header form.
 */
export function createLogger(options: LoggingConfig & { sink?: LogSink }): ProcessLogger {
  const { format, verbosity, sink = standardError() } = options;
  return new FormattingLogger({ asText: format === 'text', verbosity, sink, epochMicros: microsecondClock() });
}

/**
 * Makes a clock of microseconds since the epoch. The wall clock of JavaScript is coarse and the fine one never follows
 * corrections, so the fine one is set again when they differ.
 */
function microsecondClock(): () => number {
  let offset = performance.timeOrigin;
  return () => {
    const wall = Date.now();
    const monotonic = performance.now();
    if (Math.floor(offset + monotonic) !== wall) offset = wall - monotonic;
    return Math.floor((offset + monotonic) * 1000);
  };
}

interface Output {
  asText: boolean;
  verbosity: number;
  sink: LogSink;
  epochMicros: () => number;
}

/** The bundle gives each call its `caller`; see `scripts/inline-callers.ts`. */
class FormattingLogger implements ProcessLogger {
  readonly #output: Output;
  readonly #inherited: Readonly<Record<string, unknown>>;

  constructor(output: Output, inherited: Readonly<Record<string, unknown>> = {}) {
    this.#output = output;
    this.#inherited = inherited;
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
    this.#log(severity, fields, message, caller, { plainMessage: Object.keys(fields).length === 0 });
  }

  child(fields: Record<string, unknown>): Logger {
    return new FormattingLogger(this.#output, { ...this.#inherited, ...printableFields(fields, false) });
  }

  #log(
    level: LogRecordLevel,
    given: object,
    message: string,
    caller: string | undefined,
    textOptions?: KlogLineOptions,
  ): void {
    const { asText, verbosity, sink, epochMicros } = this.#output;
    if (verbosity < shownFrom[level]) return;
    const record: LogRecord = {
      level,
      epochMicros: epochMicros(),
      caller: caller ?? callerOfLogger(),
      message,
      inherited: this.#inherited,
      fields: printableFields(given, verbosity >= shownFrom.trace),
    };
    sink.write(asText ? klogLine(record, textOptions) : jsonLine(record));
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

/**
 * Checks the logging flags together. Some exist only to be accepted at their defaults, as in the original, whose
 * gate for them cannot be switched on.
 *
 * @throws {ExitError} code 1 that names every problem.
 */
export function checkLogging(values: FlagValues): LoggingConfig {
  const format = values['logging-format'];
  const problems = [
    ...(format === 'text' || format === 'json'
      ? []
      : [`format: Invalid value: ${goQuote(format)}: Unsupported log format`]),
    ...(values['log-flush-frequency'] > 0n
      ? []
      : [
          `flushFrequency: Invalid value: "${formatGoDuration(values['log-flush-frequency'])}": Must be greater than zero`,
        ]),
    ...(values.vmodule.length > 0 && format !== '' && format !== 'text'
      ? ['vmodule: Forbidden: Only supported for text log format']
      : []),
    ...disabledOptions(values),
  ];
  if ((format === 'text' || format === 'json') && problems.length === 0) return { format, verbosity: values.v };
  const err = problems.length === 1 ? (problems[0] ?? '') : `[${problems.join(', ')}]`;
  throw failureExit('LoggingConfiguration is invalid', { err });
}

function disabledOptions(values: FlagValues): string[] {
  const disabled = {
    'text.splitStream': values['log-text-split-stream'],
    'text.infoBufferSize': values['log-text-info-buffer-size'] !== 0n,
    'json.splitStream': values['log-json-split-stream'],
    'json.infoBufferSize': values['log-json-info-buffer-size'] !== 0n,
  };
  return Object.entries(disabled)
    .filter(([, asked]) => asked)
    .map(([option]) => `options.${option}: Forbidden: Feature LoggingAlphaOptions is disabled`);
}
