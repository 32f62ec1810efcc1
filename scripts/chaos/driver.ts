import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type DriverProcess, type Fault, startDriver } from '../../test/support/driver-process.ts';
import type { Deletion, StoredVolume } from './count.ts';
import type { Random } from './random.ts';

/** How long a call takes without a fault. */
const delayMs = 150;

/**
 * What goes wrong with a call, as often as it is named here; of the sidecar's calls some take longer than its deadline. Work is
 * begun within that: what a driver begins later, a deletion after the next attempt's success may come before.
 */
const mishaps = [
  { code: 'DEADLINE_EXCEEDED', after: true, delayMs },
  { code: 'DEADLINE_EXCEEDED', after: true, delayMs },
  { code: 'DEADLINE_EXCEEDED', after: true, delayMs },
  { code: 'DEADLINE_EXCEEDED', after: true, delayMs },
  { code: 'DEADLINE_EXCEEDED', delayMs },
  { code: 'ABORTED', after: true, delayMs },
  { code: 'ABORTED', delayMs: 20 },
  { code: 'UNAVAILABLE', after: true },
  { code: 'UNAVAILABLE' },
  { code: 'RESOURCE_EXHAUSTED', unlessThere: true },
  { code: 'INTERNAL' },
  { delayMs: 900 },
  { delayMs: 1600, after: true },
  { delayMs: 600, after: true },
] as const;

/** Audit finds the volume of a record by its name. */
const flags = ['--named-ids'];

/** How long a driver works on a late call, in parts of the sidecar's --timeout. */
const lateParts = [1.1, 1.25, 1.4] as const;

/** The longest time for which a call may go on after its caller has given up, in milliseconds. */
export function longestCallMs(timeoutMs: number): number {
  return Math.max(2000, 1.5 * timeoutMs);
}

/** The sample driver, which fails and dies. */
export class ChaosDriver {
  readonly #folder: string;
  readonly #driverName: string;
  #process: DriverProcess;
  #log = '';

  private constructor(process: DriverProcess, folder: string) {
    this.#process = process;
    this.#folder = folder;
    this.#driverName = process.driverName;
  }

  static async start(folder: string, driverName: string): Promise<ChaosDriver> {
    const driver = new ChaosDriver(await startDriver({ driverName, folder, flags }), folder);
    await driver.behave();
    return driver;
  }

  get address(): string {
    return this.#process.address;
  }

  get driverName(): string {
    return this.#driverName;
  }

  log(): string {
    return this.#log + this.#process.log();
  }

  /** Kills the driver and starts it again with the volumes it had. */
  async restart(): Promise<void> {
    await this.#process.stop('SIGKILL');
    this.#log += this.#process.log();
    this.#process = await startDriver({ driverName: this.#driverName, folder: this.#folder, flags });
  }

  /** From now on the next calls go wrong in ways that are drawn. */
  async misbehave(random: Random, { isLate, timeoutMs }: { isLate: boolean; timeoutMs: number }): Promise<void> {
    const faults = ['CreateVolume', 'DeleteVolume'].flatMap((method) => [
      ...Array.from({ length: 8 }, (): Fault => {
        const times = 1 + Math.floor(random.next() * 3); // calls
        if (isLate && method === 'CreateVolume' && random.chance(0.15)) {
          return { method, times, delayMs: random.pick(lateParts) * timeoutMs };
        }
        return random.chance(0.75) ? { method, times, ...random.pick(mishaps) } : { method, times, delayMs };
      }),
      { method, delayMs },
    ]);
    await this.#process.setFaults(faults);
  }

  /** From now on all calls succeed. */
  async behave(): Promise<void> {
    await this.#process.setFaults(['CreateVolume', 'DeleteVolume'].map((method) => ({ method, delayMs })));
  }

  /** What the driver has, read past it. */
  async stored(): Promise<StoredVolume[]> {
    const volumes = path.join(this.#folder, 'state', 'volumes');
    const ids = await this.#process.volumeIds();
    const records = await Promise.all(
      ids.map(async (id) => await readFile(path.join(volumes, id, 'record.json'), 'utf8').catch(() => undefined)),
    );
    return records.flatMap((text) => (text === undefined ? [] : [JSON.parse(text) as StoredVolume]));
  }

  async deletions(): Promise<Deletion[]> {
    return await deletionsOf(this.#process);
  }

  /** Ends it. @returns the path of the file with its calls. */
  async stop(): Promise<string> {
    await this.#process.stop();
    return path.join(this.#folder, 'state', 'calls.jsonl');
  }
}

export async function deletionsOf(driver: DriverProcess): Promise<Deletion[]> {
  const calls = await driver.calls('DeleteVolume');
  return calls.map(({ time, ms, request }) => ({
    handle: request.volume_id ?? '',
    endMs: Date.parse(time) + ms,
  }));
}
