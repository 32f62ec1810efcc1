import { systemClock } from '../base/clock.ts';
import { type Progress, progressLine } from '../base/progress.ts';
import type { SubcommandCall } from './subcommand-call.ts';

/** What a subcommand is doing, on standard error: one line on a terminal, plain lines elsewhere. */
export function stderrProgress({ stderr }: Pick<SubcommandCall, 'stderr'>): Progress {
  const columns = stderr.isTTY === true ? (stderr.columns ?? 80) : undefined;
  return progressLine({ write: (text) => stderr.write(text), columns, clock: systemClock });
}
