/** A provisioner whose volumes are folders of this machine: node main.ts [FOLDER] */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { ProvisionError, type Provisioner, runProvisioner, textLogger } from 'csi-provisioner';

const root = path.resolve(process.argv[2] ?? 'volumes');

const folders: Provisioner = {
  async provision({ claim, volumeName }) {
    if (claim.spec.selector) throw new ProvisionError('a claim with a selector is not served', { state: 'finished' });
    const folder = path.join(root, volumeName);
    await mkdir(folder, { recursive: true });
    return { metadata: { name: volumeName }, spec: { hostPath: { path: folder } } };
  },
  async delete({ metadata }) {
    await rm(path.join(root, metadata.name), { recursive: true, force: true });
  },
};

const logger = textLogger();
const provisionerName = 'hostpath.example.com';
process.exitCode = await runProvisioner({ provisionerName, provisioner: folders, logger });
