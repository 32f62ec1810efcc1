/** Progress of scripts and benchmarks: one line that is redrawn on a terminal, and a plain line now and then elsewhere. */
import { systemClock } from '../src/base/clock.ts';
import { type Progress, progressLine } from '../src/base/progress.ts';

const redrawMs = 200;

/** A progress line on standard error. */
export function terminalProgress(): Progress {
  const { stderr } = process;
  return progressLine({
    write: (text) => stderr.write(text),
    columns: stderr.isTTY ? stderr.columns : undefined,
    clock: systemClock,
  });
}

/**
 * Shows where work is, and for how long it has gone on, until it ends.
 *
 * @param state - read several times a second; it should cost next to nothing.
 */
export async function showing<T>(
  state: () => string,
  work: () => Promise<T>,
  progress = terminalProgress(),
): Promise<T> {
  const startedMs = performance.now();
  const show = (): void => progress.at(`${state()}, ${Math.round((performance.now() - startedMs) / 1000)} s`);
  show();
  const shown = setInterval(show, redrawMs);
  try {
    return await work();
  } finally {
    clearInterval(shown);
    progress.clear();
  }
}
