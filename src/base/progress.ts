import type { Clock } from './clock.ts';

/** What long work says while it goes on. */
export interface Progress {
  /** The work is at this point; called as often as the caller likes. */
  at(text: string): void;
  /** Takes the line away, for what is written next. Safe to repeat; `at` may follow. */
  clear(): void;
}

/** Where nobody watches. */
export const silentProgress: Progress = { at: () => undefined, clear: () => undefined };

export interface ProgressOptions {
  /** Where it goes, usually standard error. */
  write: (text: string) => void;
  /** Columns of the terminal; undefined where nobody watches: then plain lines are written, and few of them. */
  columns?: number | undefined;
  clock: Pick<Clock, 'monotonicMs'>;
}

/** Pause between two states of the line on a terminal, in milliseconds. */
const redrawMs = 100;
/** Pause between two plain lines, in milliseconds. */
const plainMs = 10_000;
/** Carriage return, and ECMA-48 "erase in line". */
export const eraseLine = '\r\u001b[K';

/**
 * One line that is drawn again and again on a terminal; elsewhere a plain line at once, and then one every ten seconds. A state
 * that comes too soon is left out.
 */
export function progressLine({ write, columns, clock }: ProgressOptions): Progress {
  let nextMs = -Infinity;
  let isDrawn = false;
  return {
    at(text) {
      const nowMs = clock.monotonicMs();
      if (nowMs < nextMs) return;
      nextMs = nowMs + (columns === undefined ? plainMs : redrawMs);
      if (columns === undefined) write(`${text}\n`);
      else write(`${eraseLine}${text.slice(0, Math.max(1, columns - 1))}`);
      isDrawn = columns !== undefined;
    },
    clear() {
      if (isDrawn) write(eraseLine);
      isDrawn = false;
      if (columns !== undefined) nextMs = -Infinity;
    },
  };
}
