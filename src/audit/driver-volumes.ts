/** What the driver says about its volumes: all of them, and single ones. */
import type { Clock } from '../base/clock.ts';
import { nextSlice, sliceSpent } from '../base/event-loop.ts';
import type { Progress } from '../base/progress.ts';
import { CsiCallError } from '../csi/call-error.ts';
import type { CsiCalls } from '../csi/csi-calls.ts';
import type { Driver } from '../csi/driver.ts';
import type { ControllerGetVolumeResponse__Output } from '../csi/generated/csi/v1/ControllerGetVolumeResponse.ts';
import type {
  _csi_v1_ListVolumesResponse_Entry__Output as ListedEntry,
  ListVolumesResponse__Output,
} from '../csi/generated/csi/v1/ListVolumesResponse.ts';
import { CannotReadError } from './audit-errors.ts';
import type { ClusterVolume, ClusterVolumes } from './cluster-volumes.ts';
import { asStranger, driverVolume, type RecordIndex, type Stranger } from './strangers.ts';

/** Entries of a page: small enough for the limits of cloud APIs behind drivers. */
const pageEntries = 500;
/** How often the whole list is started again (CSI spec, "ListVolumes Errors", code ABORTED). */
const maxStarts = 5;
/** How often one page is asked for when the driver is busy or does not respond. */
const maxAttempts = 4;
/** Pause before an attempt is repeated, doubling, in milliseconds. */
const pauseMs = 500;
/** Max pages in a row without a new volume: beyond that the driver repeats itself. */
const maxBarrenPages = 100;
/** Max volumes: beyond that the driver makes them up, and memory would run out. */
const maxVolumes = 1_000_000;
/** Max time for all pages, with restarts, in milliseconds: each page of a slow driver may come just in time. */
const maxListMs = 120 * 60_000;

interface ListDriverVolumesOptions {
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
    if (barrenPages >= maxBarrenPages) {
      throw new CannotReadError(
        `the driver's list of volumes never ends: ${barrenPages} pages in a row had nothing new`,
      );
    }
    if (options.clock.monotonicMs() > endMs) {
      throw new CannotReadError(
        `the driver's list of volumes takes too long: after ${maxListMs / 3_600_000} hours it had ${entryCount} entries, and goes on`,
      );
    }
  }
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

/** Calls to the driver at the same time. */
const maxCalls = 4;

/** What the driver says about one volume. `unknown`: nothing that proves anything. */
export type Existence = 'there' | 'gone' | 'unknown';

interface VerifyOptions {
  driver: Pick<Driver, 'capabilities' | 'calls'>;
  progress: Progress;
  signal: AbortSignal;
}

/**
 * Asks for what is not listed: of PersistentVolumes, and of records that name no other volume.
 *
 * @param max - number of volumes; what exceeds it is taken as not asked.
 */
export async function verify(
  { driver, progress, signal }: VerifyOptions,
  { volumes, records, strangers }: { volumes: ClusterVolumes; strangers: Map<string, Stranger>; records: RecordIndex },
  max: number,
): Promise<Map<string, Existence>> {
  if (!driver.capabilities.getVolume) return new Map();
  const ofVolumes = [...volumes.handles()].filter(isMissing).map(({ handle }) => handle);
  const ofRecords = records.all.map(({ record: { handle = '' } }) => handle);
  const unknown = ofRecords.filter((id) => id !== '' && !strangers.has(id) && volumes.with(id) === undefined);
  const missing = [...new Set([...ofVolumes, ...unknown])].slice(0, max);
  return await verifyMissing(missing, {
    calls: driver.calls,
    onThere: (id, answer) => {
      if (volumes.with(id) !== undefined) return;
      strangers.set(id, asStranger(driverVolume(answer)));
      for (const record of records.naming(id)) record.listedIds.push(id);
    },
    onCount: (count) => progress.at(`Asking the driver for single volumes: ${count} of ${missing.length}`),
    signal,
  });
}

/** Whether the driver should be asked for this single volume. */
function isMissing({ isListed, home, handle }: ClusterVolume): boolean {
  return !isListed && home !== 'elsewhere' && handle !== '';
}

/**
 * Asks for single volumes: whether a volume that is not in a list, or of a driver without lists, exists.
 *
 * @returns the results, by id.
 * @throws when the signal aborts.
 * @see CSI spec, `ControllerGetVolume`.
 */
export async function verifyMissing(
  ids: readonly string[],
  options: {
    calls: Pick<CsiCalls, 'controllerGetVolume'>;
    onThere: (id: string, response: ControllerGetVolumeResponse__Output) => void;
    onCount: (count: number) => void;
    signal: AbortSignal;
  },
): Promise<Map<string, Existence>> {
  const { onCount } = options;
  const results = new Map<string, Existence>();
  const left = ids.values();
  const worker = async (): Promise<void> => {
    for (const id of left) {
      results.set(id, await existence(id, options));
      onCount(results.size);
    }
  };
  await Promise.all(Array.from({ length: maxCalls }, worker));
  return results;
}

async function existence(
  id: string,
  { calls, onThere, signal }: Parameters<typeof verifyMissing>[1],
): Promise<Existence> {
  try {
    const answer = await calls.controllerGetVolume({ volume_id: id }, { signal });
    if (answer.volume === undefined) return 'unknown';
    onThere(id, answer);
    return 'there';
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof CsiCallError && error.codeName === 'NotFound' ? 'gone' : 'unknown';
  }
}
