import type { CsiProvisionerOptions } from '../../csi/csi-provisioner-options.ts';
import { NodeDeployment } from '../../csi/node-deployment/node-deployment.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

/**
 * Ownership of claims and volumes by this node; undefined in a central deployment, which serves all nodes.
 *
 * @param settings - of the provisioner that uses it.
 */
export function nodeDeploymentFeature(
  { config, driver, random, clock }: FeatureOptions,
  settings: CsiProvisionerOptions,
): NodeDeployment | undefined {
  const { nodeInfo } = driver;
  if (config.nodeDeployment === null || nodeInfo === undefined) return undefined;
  return new NodeDeployment({
    ...config.nodeDeployment,
    nodeInfo: () => driver.nodeInfo ?? nodeInfo,
    getCapacity: (request, call) => driver.calls.getCapacity(request, call),
    driverConnected: () => driver.connected,
    settings,
    workers: config.provisioning.workerThreads,
    random,
    clock,
  });
}
