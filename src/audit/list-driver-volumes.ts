import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import type { Clock } from '../base/clock.ts';
import { CsiCallError } from '../csi/call-error.ts';
import type { CsiCalls } from '../csi/csi-calls.ts';
import type {
  _csi_v1_ListVolumesResponse_Entry__Output as ListedEntry,
  ListVolumesResponse__Output,
} from '../csi/generated/csi/v1/ListVolumesResponse.ts';
import { CannotReadError } from './cannot-read-error.ts';

/** Entries of a page: small enough for the limits of cloud APIs behind drivers. */
const pageEntries = 500;
/** How often the whole list is started again (CSI spec, "ListVolumes Errors", code ABORTED). */
const maxStarts = 5;
/** How often one page is asked for when the driver is busy or does not respond. */
const maxAttempts = 4;
/** Pause before an attempt is repeated, doubling, in milliseconds. */
const pauseMs = 500;
/** Max pages in a row without a new volume: beyond that the driver repeats itself, with a new token each time. */
const maxBarrenPages = 100;
/** Max volumes: beyond that the driver makes them up, and memory would run out. */
const maxVolumes = 1_000_000;
/** Max time for all pages, with restarts, in milliseconds: each page of a slow driver may come just in time. */
const maxListMs = 120 * 60_000;

export interface ListDriverVolumesOptions {
  calls: Pick<CsiCalls, 'listVolumes'>;
  /** Called at the start, and again when the driver aborts the list, which is then read from the start: what came before is void. */
  onStart: () => void;
  /** @returns false for an id that came before. */
  onVolume: (id: string, entry: ListedEntry) => boolean;
  /** Called after each page. */
  onPage?: () => void;
  clock: Clock;
  signal: AbortSignal;
}

/** Irregularities of a list. */
export interface ListedVolumes {
  /** Entries without an id, which cannot be compared with anything. */
  unnamed: number;
  /** Entries that came twice. */
  repeated: number;
}

/**
 * All volumes of the driver, page by page. Pages are no consistent view: volumes that come and go meanwhile may be missed, or
 * appear twice.
 *
 * @returns undefined for a driver that does not implement the call, whatever it reported.
 * @throws {CannotReadError} when the list cannot be read to its end.
 * @see CSI spec, `ListVolumes`.
 */
export async function listDriverVolumes(options: ListDriverVolumesOptions): Promise<ListedVolumes | undefined> {
  let entries = pageEntries;
  const endMs = options.clock.monotonicMs() + maxListMs;
  for (let start = 1; start <= maxStarts; start++) {
    options.onStart();
    try {
      return await readPages(options, { entries, endMs });
    } catch (error) {
      if (!(error instanceof CsiCallError)) throw error;
      if (error.codeName === 'Unimplemented') return undefined;
      // some drivers do not support paging, or not this page size
      const isSizeRefused = error.codeName === 'InvalidArgument' || error.codeName === 'OutOfRange';
      if (isSizeRefused && entries > 0) entries = 0;
      else if (error.codeName !== 'Aborted') throw failed(error);
    }
    await options.clock.sleep(pauseMs, { signal: options.signal });
  }
  throw new CannotReadError(`the driver's list of volumes had to be restarted ${maxStarts} times: try again later`);
}

/** @throws {CsiCallError} when the list is to be started again, or not to be had. */
async function readPages(
  options: ListDriverVolumesOptions,
  { entries, endMs }: { entries: number; endMs: number },
): Promise<ListedVolumes> {
  const listed: ListedVolumes = { unnamed: 0, repeated: 0 };
  const repeats = repeatedToken();
  let entryCount = 0;
  let barrenPages = 0;
  for (let token = ''; ;) {
    const page = await readPage(options, { max_entries: entries, starting_token: token });
    barrenPages = (await takePage(page, options, listed)) ? 0 : barrenPages + 1;
    options.onPage?.();
    entryCount += page.entries?.length ?? 0;
    if (entryCount > maxVolumes) {
      throw new CannotReadError(`the driver's list of volumes never ends: it has more than ${maxVolumes} entries`);
    }
    token = page.next_token ?? '';
    if (token === '') return listed;
    const isRepeated = repeats(token);
    if (isRepeated || barrenPages >= maxBarrenPages) {
      throw new CannotReadError(
        `the driver's list of volumes never ends: ${isRepeated ? 'it gave the same next_token twice' : `${barrenPages} pages in a row had nothing new`}`,
      );
    }
    if (options.clock.monotonicMs() > endMs) {
      throw new CannotReadError(
        `the driver's list of volumes takes too long: after ${maxListMs / 3_600_000} hours it had ${entryCount} entries, and goes on`,
      );
    }
  }
}

/** Notices tokens that repeat in a cycle, after a few rounds. It keeps only one of them, as they may be long (Brent's algorithm). */
function repeatedToken(): (token: string) => boolean {
  let kept = '';
  let left = 0;
  let span = 1;
  return (token) => {
    if (token === kept) return true;
    if (left === 0) {
      kept = token;
      span *= 2;
      left = span;
    }
    left--;
    return false;
  };
}

/** @returns whether it had anything new. */
async function takePage(
  page: ListVolumesResponse__Output,
  { onVolume }: ListDriverVolumesOptions,
  listed: ListedVolumes,
): Promise<boolean> {
  let hasNew = false;
  for (const entry of page.entries ?? []) {
    if (sliceSpent()) await nextSlice();
    const id = entry.volume?.volume_id ?? '';
    if (id === '') listed.unnamed++;
    else if (onVolume(id, entry)) hasNew = true;
    else listed.repeated++;
  }
  return hasNew;
}

async function readPage(
  { calls, clock, signal }: ListDriverVolumesOptions,
  request: { max_entries: number; starting_token: string },
): Promise<ListVolumesResponse__Output> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await calls.listVolumes(request, { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CsiCallError) || !isTransient(error) || attempt === maxAttempts) throw error;
    }
    await clock.sleep(pauseMs * 2 ** (attempt - 1), { signal });
  }
}

function isTransient({ codeName }: CsiCallError): boolean {
  return codeName === 'Unavailable' || codeName === 'DeadlineExceeded';
}

function failed(error: CsiCallError): CannotReadError {
  return new CannotReadError(`the driver does not list its volumes: ${error.message}`, { cause: error });
}
