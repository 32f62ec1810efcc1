import { CallError } from './call-error.ts';
import type { PageRequest } from './messages.ts';

/** One page of a list; `next_token` is absent on the last one. */
export interface Page<T> {
  entries: T[];
  next_token?: string;
}

const tokenPattern = /^after-([0-9]{1,15})$/;

/**
 * Cuts a page out of records in serial order. A token names the last record of the page before, not a position, so
 * records that come and go between two pages make none appear twice or go missing.
 *
 * @throws {CallError} `ABORTED` for a token we never gave (CSI spec, "ListVolumes Errors"), `INVALID_ARGUMENT` for a
 *   negative size.
 */
export function listPage<T extends { serial: number }>(records: readonly T[], request: PageRequest): Page<T> {
  const { max_entries: maxEntries = 0, starting_token: token = '' } = request;
  if (maxEntries < 0) throw new CallError('INVALID_ARGUMENT', 'max_entries must not be negative');
  const after = token === '' ? 0 : Number(tokenPattern.exec(token)?.[1] ?? NaN);
  if (Number.isNaN(after)) throw new CallError('ABORTED', `starting_token ${token} is not valid`);
  const rest = records.filter((record) => record.serial > after);
  const entries = maxEntries === 0 ? rest : rest.slice(0, maxEntries);
  const last = entries.at(-1);
  return entries.length === rest.length || last === undefined
    ? { entries }
    : { entries, next_token: `after-${last.serial}` };
}
