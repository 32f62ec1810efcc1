/** Volumes that are folders, with a mistake: node seeded-provisioner.ts FOLDER MISTAKE */
import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync, writeSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import {
  type PersistentVolume,
  type ProvisionOptions,
  pvFor,
  type Recoverable,
  type RevokeContext,
  runProvisioner,
  textLogger,
} from '../../src/index.ts';

const [root = '', mistake = 'none'] = process.argv.slice(2);
const has = (name: string): boolean => mistake === name;

/** The first process has not finished what it makes when it is killed; the others have. */
const isFirst = readdirSync(root).length === 0;

/** Less than a lease, more than a busy machine takes. */
const pauseMs = 10_000;

interface FolderPlan {
  volume: PersistentVolume;
}

const pathOf = ({ spec }: PersistentVolume): string => spec.hostPath?.path ?? '';

/** As a program does that takes its unfinished work for its own although its lease has expired. */
function removeAfterPause(folder: string): void {
  let last = Date.now();
  setInterval(() => {
    if (Date.now() - last > pauseMs) rmSync(folder, { recursive: true, force: true });
    last = Date.now();
  }, 10).unref();
}

function endWith(message: string): never {
  writeSync(2, `${message}\n`);
  process.exit(3);
}

/** Storage that gets its name once it is complete. */
async function movePart(part: string, folder: string): Promise<void> {
  await mkdir(part, { recursive: true });
  if (isFirst) await new Promise(() => undefined);
  await rename(part, folder);
}

class Folders implements Recoverable<FolderPlan> {
  plan({ claim, storageClass, volumeName }: ProvisionOptions): Promise<FolderPlan> {
    const source = { hostPath: { path: path.join(root, volumeName) } };
    return Promise.resolve({ volume: pvFor({ claim, storageClass, volumeName, source }) });
  }

  async fulfil({ volume }: FolderPlan): Promise<PersistentVolume> {
    if (has('an end by itself')) endWith('the backend is gone');
    if (has('a part that only fulfil removes')) await movePart(`${pathOf(volume)}.part`, pathOf(volume));
    const folder = has('a random part in the name') ? `${pathOf(volume)}-${randomUUID()}` : pathOf(volume);
    await mkdir(folder, { recursive: true });
    if (has('a clean-up after a pause')) removeAfterPause(folder);
    return { ...volume, spec: { ...volume.spec, hostPath: { path: folder } } };
  }

  async revoke({ volume }: FolderPlan, context: RevokeContext): Promise<void> {
    if (has('a revoke that does nothing')) return;
    await context.beforeDelete(pathOf(volume));
    await rm(pathOf(volume), { recursive: true, force: !has('a revoke that works once') });
  }

  storageKeys(volume: PersistentVolume): readonly string[] {
    return has('storage keys that are always empty') || pathOf(volume) === '' ? [] : [pathOf(volume)];
  }

  handleKey(handle: string): string {
    return handle;
  }

  async delete(volume: PersistentVolume): Promise<void> {
    if (!has('a delete that forgets')) await rm(pathOf(volume), { recursive: true, force: true });
  }
}

const provisioner = new Folders();
/** Without records it starts anew on what an earlier process has made. */
const unrecorded = {
  provision: async (options: ProvisionOptions): Promise<PersistentVolume> => {
    const { volume } = await provisioner.plan(options);
    return await provisioner.fulfil({ volume });
  },
  delete: (volume: PersistentVolume): Promise<void> => provisioner.delete(volume),
};

process.exitCode = await runProvisioner({
  provisionerName: 'seeded.example.com',
  provisioner: has('no records') ? unrecorded : provisioner,
  logger: textLogger(),
  leaderElection: true,
  addFinalizer: true,
  maxCallMs: has('a long maxCallMs') ? 22_000 : 1000,
});
