import path from 'node:path';
import type { ClusterTarget } from '../../test/support/cluster.ts';
import { type KeepLog, openStage, type Stage } from '../../test/support/stage.ts';
import { startAnnounced, type StartedProcess } from '../../test/support/started-process.ts';

/** A sidecar that is measured. */
export interface Candidate {
  name: 'ours' | 'peer';
  /** Words separated by spaces. */
  command: string;
  flags: readonly string[];
}

/** One scenario with one sidecar. */
export interface Run {
  candidate: Candidate;
  target: ClusterTarget;
  short: boolean;
  keepLog: KeepLog;
}

export interface Driver {
  name: string;
  /** `unix:///...`. */
  address: string;
}

export interface SidecarOptions {
  /** Default: the first one. */
  driver?: Driver | undefined;
  /** Path. Default: one that leads directly to the API server. */
  kubeconfig?: string | undefined;
  flags?: readonly string[];
  /** Default: that of the candidate. */
  command?: string;
}

/** A cluster of its own, with drivers. */
export type GreyStage = Stage & {
  drivers: readonly Driver[];
  /** Starts the candidate. */
  start(options?: SidecarOptions): Promise<StartedProcess>;
};

const driverProgram = path.join(import.meta.dirname, 'tenant-driver.ts');

/**
 * Opens an empty cluster with drivers.
 *
 * @param options.drivers - the number of drivers; each sidecar that leads at the same time as others needs its own.
 * @param options.stops - whether the API server can be paused; the sandbox then uses no TLS.
 */
export async function openGreyStage(
  { target, candidate, keepLog }: Run,
  { drivers: driverCount = 1, stops = false }: { drivers?: number; stops?: boolean } = {},
): Promise<GreyStage> {
  const cluster = { target, ownCluster: stops };
  const rbac = ['components/leader-election/rbac.yaml'];
  return await openStage({ name: 'grey', cluster, rbac, keepLog }, async (stage) => {
    const drivers = Array.from({ length: driverCount }, (_, index) => ({
      name: `grey-${index}.csi.example.com`,
      address: `unix://${path.join(stage.folder, `${index}.sock`)}`,
    }));
    const { process: driver } = await startAnnounced({
      program: process.execPath,
      args: [driverProgram, stage.folder, ...drivers.map(({ name }) => name)],
    });
    stage.defer(() => driver.stop('SIGKILL'));
    const start = async (options: SidecarOptions = {}): Promise<StartedProcess> => {
      const { driver: { address = '' } = drivers[0] ?? {}, flags = [], command = candidate.command } = options;
      return await stage.startSidecar({
        title: `${candidate.name} ${flags.join(' ')}`,
        program: command,
        csiAddress: address,
        kubeconfig: options.kubeconfig,
        flags: [...candidate.flags, ...flags],
      });
    };
    return { drivers, start };
  });
}
