import { gauge, type MetricRegistry } from '../base/metrics.ts';

/**
 * Adds a gauge that is always 1 and identifies the program by its labels, as Prometheus clients do.
 *
 * @param version - of the program, such as `v0.1.0`.
 */
export function addBuildInfo(registry: MetricRegistry, version: string): void {
  gauge({
    registry,
    name: 'csi_provisioner_build_info',
    help: 'Version of the sidecar, and what it runs on.',
    labels: ['version', 'node_version', 'platform'],
  }).set({ version, node_version: process.version, platform: `${process.platform}/${process.arch}` }, 1);
}
