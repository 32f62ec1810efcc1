/** The in-tree plugins that CSI drivers replaced (Kubernetes, "Volumes", "CSI migration"). */
import { awsEbs } from './aws-ebs.ts';
import { azureDisk, azureFile } from './azure.ts';
import { cinder } from './cinder.ts';
import { gcePd } from './gce-pd.ts';
import type { InTreePlugin } from './in-tree-plugin.ts';
import { portworxVolume } from './portworx-volume.ts';
import { vsphereVolume } from './vsphere-volume.ts';

export const inTreePlugins: readonly InTreePlugin[] = [
  awsEbs,
  gcePd,
  cinder,
  azureDisk,
  azureFile,
  vsphereVolume,
  portworxVolume,
];

/** Whether a name is that of a provisioner that the driver stands for: its own, and that of the plugin that it replaced. */
export function isProvisionerOf(driverName: string): (name: string) => boolean {
  const plugin = replacedPlugin(driverName);
  return (name) => name === driverName || name === plugin?.name;
}

/** The plugin that a driver replaced; undefined for all but a few drivers. */
export function replacedPlugin(driverName: string): InTreePlugin | undefined {
  return inTreePlugins.find((plugin) => plugin.driverName === driverName);
}
