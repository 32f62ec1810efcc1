import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { type BaseImage, removeBase } from './local-base.ts';
import { runTool } from './run-tool.ts';

/** Images and layers in a folder; buildah's usual storage is not touched. Disposing removes all. */
export interface BuildahStorage extends AsyncDisposable {
  /** Runs buildah on it. @returns what it printed. */
  readonly buildah: (args: readonly string[]) => Promise<string>;
  /** Makes an image of a root file system, which is removed. */
  readonly makeBase: (name: string, base: BaseImage, options?: BaseOptions) => Promise<void>;
}

/** Further options of `buildah config` and `buildah commit`. */
export interface BaseOptions {
  readonly config?: readonly string[];
  readonly commit?: readonly string[];
}

/**
 * @param parent - the folder to make it in.
 * @param driver - how layers are stored: `overlay` is faster, `vfs` works everywhere.
 */
export async function openStorage(parent: string, driver: 'overlay' | 'vfs' = 'vfs'): Promise<BuildahStorage> {
  const storage = await mkdtemp(path.join(parent, 'buildah-'));
  const global = ['--root', `${storage}/root`, '--runroot', `${storage}/run`, '--storage-driver', driver];
  const buildah = (args: readonly string[]): Promise<string> =>
    runTool('buildah', [...global, ...args], { environment: { BUILDAH_ISOLATION: 'chroot' } });
  return {
    buildah,
    makeBase: async (name, base, { config = [], commit = [] } = {}) => {
      const container = (await buildah(['from', 'scratch'])).trim();
      await buildah(['add', '--quiet', container, base.folder, '/']);
      const settings = Object.entries(base.environment).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
      await buildah(['config', '--user', base.user, ...settings, ...config, container]);
      await buildah(['commit', '--quiet', '--rm', ...commit, container, name]);
      await removeBase(base);
    },
    async [Symbol.asyncDispose]() {
      await buildah(['umount', '--all']);
      await rm(storage, { recursive: true, force: true });
    },
  };
}
