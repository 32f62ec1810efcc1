/**
 * Loaded into a program with `node --import`: the program stops itself, as SIGSTOP does, at the first request to the API server
 * that `STOP_AT` describes. A signal from outside usually finds it waiting for events, where it notices first how much time has
 * passed.
 */
import { subscribe } from 'node:diagnostics_channel';

/** `request` or `answer`, the method, and a pattern of path and body. */
const [when = '', method = '', pattern = ''] = (process.env['STOP_AT'] ?? '').split(' ');
let hasStopped = false;

subscribe(when === 'request' ? 'undici:request:create' : 'undici:request:trailers', (message) => {
  const { request } = message as { request: { method: string; path: string; body: Buffer | null } };
  const text = `${request.path} ${request.body?.toString() ?? ''}`;
  if (hasStopped || request.method !== method || !new RegExp(pattern).test(text)) return;
  hasStopped = true;
  process.kill(process.pid, 'SIGSTOP');
});
