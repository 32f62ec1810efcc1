/**
 * Volumes that are sparse image files, and that survive a crash of this process at any moment: node images.ts [FOLDER]
 *
 * The files have the size that the claim requests, and at least that of the parameter `minimumSize` of the class.
 */
import { mkdir, open, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import {
  capacityText,
  type PersistentVolume,
  ProvisionError,
  type ProvisionOptions,
  pvFor,
  quantityBytes,
  readParameters,
  type Recoverable,
  type RevokeContext,
  runProvisioner,
  textLogger,
} from 'csi-provisioner';

const root = path.resolve(process.argv[2] ?? 'volumes');
await mkdir(root, { recursive: true });

interface ImagePlan {
  file: string;
  bytes: number;
  volume: PersistentVolume;
}

class ImageFiles implements Recoverable<ImagePlan> {
  async plan({ claim, storageClass, volumeName }: ProvisionOptions): Promise<ImagePlan> {
    const minimum = readParameters(storageClass, { keys: ['minimumSize'] }).bytes('minimumSize') ?? 4096n;
    const requested = quantityBytes(claim.spec.resources?.requests?.['storage'] ?? 0);
    const bytes = requested > minimum ? requested : minimum;
    const { bavail, bsize } = await statfs(root, { bigint: true });
    const free = bavail * bsize;
    if (bytes > free) throw new ProvisionError(`only ${free} bytes are free`, { state: 'finished' });
    const file = path.join(root, `${volumeName}.img`);
    const volume = pvFor({ claim, storageClass, volumeName, source: { hostPath: { path: file, type: 'File' } } });
    volume.spec.capacity = { storage: capacityText(bytes) };
    return { file, bytes: Number(bytes), volume };
  }

  async fulfil({ file, bytes, volume }: ImagePlan): Promise<PersistentVolume> {
    await using image = await open(file, 'a');
    await image.truncate(bytes);
    return volume;
  }

  async revoke({ file }: ImagePlan, context: RevokeContext): Promise<void> {
    await context.beforeDelete(file);
    await rm(file, { force: true });
  }

  ownsSource({ spec }: PersistentVolume): boolean {
    return spec.hostPath !== undefined && path.dirname(spec.hostPath.path) === root;
  }

  storageKeys({ spec }: PersistentVolume): readonly string[] {
    return spec.hostPath === undefined ? [] : [spec.hostPath.path];
  }

  handleKey(handle: string): string {
    return handle;
  }

  async delete({ metadata }: PersistentVolume): Promise<void> {
    await rm(path.join(root, `${metadata.name}.img`), { force: true });
  }
}

process.exitCode = await runProvisioner({
  provisionerName: 'hostpath.example.com',
  provisioner: new ImageFiles(),
  logger: textLogger(),
  leaderElection: true, // the records are in Leases beside that of the election
  maxCallMs: 5000, // nobody waits longer for a file that is opened and given a size
});
