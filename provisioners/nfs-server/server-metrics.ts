import { createRegistry, type MetricRegistry } from '../../src/index.ts';
import { Gauge } from 'prom-client';
import type { DiskProbe } from './disk-probe.ts';
import type { LostExports } from './lost-exports.ts';
import type { LostQuotas } from './lost-quotas.ts';
import type { Serving } from './serving.ts';

/** The metrics of the NFS server, in a registry for those of the controller, too. */
export function serverMetrics(
  serving: Pick<Serving, 'exports' | 'isReady' | 'restarts'>,
  {
    lost,
    lostQuotas,
    disk,
  }: {
    lost: Pick<LostExports, 'count'>;
    lostQuotas: Pick<LostQuotas, 'count'> | undefined;
    disk: Pick<DiskProbe, 'problem'> | undefined;
  },
): MetricRegistry {
  const registry = createRegistry();
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  };
  gauge('nfs_provisioner_exports', 'Volumes that are exported.', () => serving.exports.count);
  gauge(
    'nfs_provisioner_unexported_volumes',
    'PersistentVolumes of this provisioner that cannot be exported.',
    () => lost.count,
  );
  gauge(
    'nfs_provisioner_unlimited_volumes',
    'PersistentVolumes of this provisioner whose quota cannot be set.',
    () => lostQuotas?.count ?? 0,
  );
  gauge('nfs_provisioner_export_directory_up', '1 while the export directory is writable, otherwise 0.', () =>
    Number(disk?.problem === undefined),
  );
  gauge('nfs_provisioner_server_up', '1 while the NFS server responds, otherwise 0.', () => Number(serving.isReady));
  gauge('nfs_provisioner_server_restarts', 'Restarts of the NFS server.', () => serving.restarts);
  return registry;
}
