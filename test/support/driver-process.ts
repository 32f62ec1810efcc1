import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programFile } from './program-file.ts';
import { startAnnounced, type StartedProcess } from './started-process.ts';

const program = programFile('hostpath-driver');

/** One entry of the driver's `faults.json`. */
export interface Fault {
  method: string;
  code?: string;
  message?: string;
  times?: number;
  delayMs?: number;
  /** Waits until the faults are replaced by some without it. */
  hold?: boolean;
  hang?: boolean;
  /** Spoils the answer after the work is done. */
  after?: boolean;
  /** Only calls with these class parameters. */
  parameters?: Record<string, string>;
  /** Only calls that name this volume. */
  volumeId?: string;
  /** The size in the answer of CreateVolume. */
  capacityBytes?: number;
}

/** One line of the driver's call log; of secrets it has the keys. */
export interface DriverCall {
  /** RFC 3339, when the call came in. */
  time: string;
  method: string;
  request: {
    name?: string;
    volume_id?: string;
    secrets?: string[];
    parameters?: Record<string, string>;
    mutable_parameters?: Record<string, string>;
    volume_content_source?: { volume?: { volume_id: string }; snapshot?: { snapshot_id: string } };
    volume_capabilities?: Record<string, unknown>[];
    accessibility_requirements?: Record<'requisite' | 'preferred', { segments: Record<string, string> }[]>;
  };
  code: string;
  /** How long the call took, in milliseconds. */
  ms: number;
}

/** The sample driver as a process of its own. */
export interface DriverProcess extends StartedProcess {
  readonly driverName: string;
  /** `unix:///...`. */
  readonly address: string;
  /** What the driver has stored: ids of its volumes. */
  volumeIds(): Promise<string[]>;
  /** The directory or file that a volume's user would see. */
  contentPath(volumeId: string): string;
  /** Answered calls of one method, oldest first. */
  calls(method: string): Promise<DriverCall[]>;
  /** Replaces the faults that the driver injects into coming calls. */
  setFaults(faults: Fault[]): Promise<void>;
  /** Faults with what is left of their `times`. */
  faults(): Promise<Fault[]>;
}

export interface DriverProcessOptions {
  driverName: string;
  /** For socket and state; kept short, for a socket's path has little room. */
  folder: string;
  flags?: readonly string[];
}

/** Starts the driver and waits until it listens. */
export async function startDriver({ driverName, folder, flags = [] }: DriverProcessOptions): Promise<DriverProcess> {
  const address = `unix://${join(folder, 'csi.sock')}`;
  const stateDir = join(folder, 'state');
  const { process: driver } = await startAnnounced({
    program: process.execPath,
    args: [
      program,
      `--csi-address=${address}`,
      `--state-dir=${stateDir}`,
      `--driver-name=${driverName}`,
      '--call-log',
      ...flags,
    ],
  });
  const volumes = join(stateDir, 'volumes');
  const faultsFile = join(stateDir, 'faults.json');
  return {
    ...driver,
    driverName,
    address,
    volumeIds: async () => (await readdir(volumes)).filter((entry) => !entry.startsWith('.')),
    contentPath: (volumeId) => join(volumes, volumeId, 'data'),
    async calls(method) {
      const lines = (await readIfThere(join(stateDir, 'calls.jsonl'))).split('\n').filter((line) => line !== '');
      return lines.map((line) => JSON.parse(line) as DriverCall).filter((call) => call.method === method);
    },
    async setFaults(faults) {
      await writeFile(`${faultsFile}.test`, JSON.stringify(faults));
      await rename(`${faultsFile}.test`, faultsFile);
    },
    faults: async () => JSON.parse((await readIfThere(faultsFile)) || '[]') as Fault[],
  };
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
