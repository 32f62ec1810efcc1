/** A provisioner whose volumes are folders of this machine: node main.ts [FOLDER] */
import { mkdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { ProvisionError, type Provisioner, pvFor, requireIdentity, runProvisioner, textLogger } from 'csi-provisioner';

const root = path.resolve(process.argv[2] ?? 'volumes');
const madeOn = 'example.com/made-on';
const machine = process.env['NODE_NAME'] ?? hostname();

const folders: Provisioner = {
  async provision({ claim, storageClass, volumeName }) {
    if (claim.spec.selector) throw new ProvisionError('a claim with a selector is not served', { state: 'finished' });
    const folder = path.join(root, volumeName);
    await mkdir(folder, { recursive: true });
    const source = { hostPath: { path: folder, type: 'Directory' as const } };
    return pvFor({ claim, storageClass, volumeName, source, annotations: { [madeOn]: machine } });
  },
  async delete(volume) {
    requireIdentity(volume, madeOn, machine);
    await rm(path.join(root, volume.metadata.name), { recursive: true, force: true });
  },
};

const logger = textLogger();
const provisionerName = 'hostpath.example.com';
process.exitCode = await runProvisioner({ provisionerName, provisioner: folders, logger });
