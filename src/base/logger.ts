/**
 * The logger every floor receives. Messages are constant; what varies travels in fields with fixed names
 * (`claim`, `volume`, `driver`, `code`, `attempt`, `durationMs`, `err`). Secrets never: see `SecretString`.
 *
 * Levels: `error` an operator must act, `warn` the program recovers, `info` once per claim or lifecycle step, `debug` per call
 * (`-v=2` and up), `trace` per message (`-v=5` and up).
 */
export interface Logger {
  error(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
  debug(fields: object, message: string): void;
  trace(fields: object, message: string): void;
  /** A logger that adds `fields` to each of its lines. */
  child(fields: Record<string, unknown>): Logger;
}

/** Fields whose text is made to be copied out of a log: text logs print their line breaks as they are. */
export const multiLineFields: ReadonlySet<string> = new Set(['addRule']);

const nothing = (): void => undefined;

/** A logger that drops everything. */
export const silentLogger: Logger = {
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  trace: nothing,
  child: () => silentLogger,
};
