/** A line on standard error when the API server keeps a person waiting. */
import type { Clock } from '../base/clock.ts';
import { printable } from '../base/printable.ts';
import { eraseLine } from '../base/progress.ts';
import { shortValue } from '../base/short-value.ts';
import { ApiError } from '../kube/client/api-error.ts';
import type { RequestPause } from '../kube/client/request.ts';
import { durationText } from '../explain/time-text.ts';
import type { TextOutput } from './subcommand-call.ts';

/** A wait is worth a line when it takes this long, and each further one when it ends this much later; in milliseconds. */
const worthMs = 3000;

/** @returns what is to be called before each pause. Of requests that wait at the same time one is named. */
export function pauseNotice(
  { stderr }: { stderr: TextOutput },
  clock: Pick<Clock, 'wallMs'>,
): (pause: RequestPause) => void {
  let begunMs = 0;
  let lastUntilMs = -Infinity;
  let announcedMs = -Infinity;
  return ({ error, pauseMs, verb, resource }) => {
    const nowMs = clock.wallMs();
    if (nowMs - lastUntilMs > worthMs) begunMs = nowMs; // it responded in between
    const untilMs = nowMs + pauseMs;
    lastUntilMs = Math.max(lastUntilMs, untilMs);
    if (untilMs - begunMs < worthMs || untilMs - announcedMs < worthMs) return;
    announcedMs = untilMs;
    const time = new Date(untilMs).toISOString().slice(11, 19);
    const what = `${verb} ${resource} is sent again at ${time} UTC, in ${durationText(pauseMs)}`;
    stderr.write(`${stderr.isTTY === true ? eraseLine : ''}${reasonOf(error)}; ${what}\n`);
  };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof ApiError)) return `The API server cannot be reached (${foreign((error as Error).message)})`;
  const { code, retryAfterS, message } = error;
  return `The API server responds ${code} (${foreign(message)}) and asks for a pause of ${retryAfterS} s`;
}

/** In one line: a proxy may send a page of HTML. */
function foreign(text: string): string {
  return printable(shortValue(text));
}
