/**
 * The same with everything that production asks for: node replicated.ts FOLDER
 *
 * FOLDER lies on a file system that all nodes mount at the same path. Any number of instances may run; one works, the
 * others stand by.
 */
import { existsSync } from 'node:fs';
import { rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import {
  ExponentialLimiter,
  IgnoredError,
  makeDirectory,
  type PersistentVolume,
  type PersistentVolumeClaim,
  ProvisionError,
  type Provisioner,
  type ProvisionOptions,
  quantityBytes,
  runProvisioner,
  textLogger,
} from 'csi-provisioner';

class SharedFolders implements Provisioner {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async provision({ claim, storageClass, volumeName }: ProvisionOptions): Promise<PersistentVolume> {
    const { mode = '777' } = storageClass.parameters ?? {};
    if (!/^[0-7]{3}$/.test(mode)) {
      const message = `class ${storageClass.metadata.name}: mode ${JSON.stringify(mode)} is not like 755`;
      throw new ProvisionError(message, { state: 'finished', infeasible: true });
    }
    const wanted = quantityBytes(claim.spec.resources?.requests?.['storage'] ?? 0);
    const folder = path.join(this.#root, volumeName);
    if (!existsSync(folder) && wanted > (await this.#freeBytes())) {
      throw new ProvisionError(`${wanted} bytes are more than are free`, { state: 'finished' });
    }
    await makeDirectory(folder, { mode: parseInt(mode, 8) });
    return { metadata: { name: volumeName }, spec: { hostPath: { path: folder, type: 'Directory' } } };
  }

  async delete({ metadata, spec }: PersistentVolume): Promise<void> {
    const folder = path.join(this.#root, metadata.name);
    const lies = spec.hostPath?.path;
    if (lies !== folder) throw new IgnoredError(`it lies in ${lies ?? 'no folder'}, not in ${folder}`);
    await rm(folder, { recursive: true, force: true });
  }

  shouldProvision(claim: PersistentVolumeClaim): boolean {
    return claim.metadata.namespace !== 'kube-system';
  }

  shouldDelete(volume: PersistentVolume): boolean {
    return volume.metadata.annotations?.['example.com/keep'] !== 'true';
  }

  async #freeBytes(): Promise<bigint> {
    const { bavail, bsize } = await statfs(this.#root, { bigint: true });
    return bavail * bsize;
  }
}

process.exitCode = await runProvisioner({
  provisionerName: 'hostpath.example.com',
  provisioner: new SharedFolders(path.resolve(process.argv[2] ?? 'volumes')),
  logger: textLogger(),
  leaderElection: true,
  http: { address: `:${process.env['METRICS_PORT'] ?? 8080}` },
  addFinalizer: true,
  limiter: new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 }),
  failedProvisionThreshold: 0,
  failedDeleteThreshold: 0,
  provisionTimeoutMs: 60_000,
  drainMs: 65_000,
});
