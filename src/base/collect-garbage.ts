import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void;

/**
 * Collects garbage now and gives memory back to the system; blocks for about a tenth of a second. For the one moment
 * when a program has just read far more than it keeps: left alone, V8 holds on to that memory while little is going on.
 */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc'); // takes effect in contexts made from now on
  const collect = runInNewContext('gc') as Collect;
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
