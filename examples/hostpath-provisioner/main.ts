/** A provisioner whose volumes are folders of this machine: node main.ts [FOLDER] */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { connect, ProvisionController, ProvisionError, type Provisioner, textLogger } from 'csi-provisioner';

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

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
const logger = textLogger();
await using transport = connect({ logger });
const provisionerName = 'hostpath.example.com';
await new ProvisionController({ provisionerName, provisioner: folders, transport, logger }).run({ stop: stop.signal });
