/** Images without an engine that runs in the background: buildah builds, `unshare` and `chroot` run. Needs root. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type StartedProcess, startProcess } from '../../test/support/started-process.ts';
import { openStorage } from './buildah-storage.ts';
import type { ContainerOptions, Engine, Image, ImageConfig } from './engine.ts';
import { buildBase, debianBase, runtimeBase } from './local-base.ts';
import { npmConfig, npmSettings } from './npm-settings.ts';
import { runTool } from './run-tool.ts';

const buildImage = 'localhost/image-test/build-base';
const runtimeImage = 'localhost/image-test/runtime-base';
const debianImage = 'localhost/image-test/debian-base';
/** The target on Debian. */
const debianTarget = 'nfs-provisioner';

/**
 * Becomes the container: in a mount namespace of its own, its folders are mounted and its root is made read-only. By
 * `exec` it keeps its process id, so that a signal reaches the program.
 */
const containerScript = `
root=$1 user=$2 mounts=$3 cgroup=$4
shift 4
if [ -n "$cgroup" ]; then echo $$ >"$cgroup"; fi
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
while read -r from to; do
  if [ -n "$from" ]; then mount --bind "$from" "$root$to"; fi
done <<END
$mounts
END
mount -o remount,bind,ro "$root"
cd "$root"
exec chroot --userspec="$user" "$root" "$@"
`;

/** What of `buildah inspect` is read. */
interface Inspected {
  OCIv1: { config: { User?: string; Entrypoint?: string[]; Env?: string[]; Labels?: Record<string, string> } };
  Docker: { config: { Healthcheck?: unknown } };
}

/**
 * Makes the base images from this machine's own Node.js and npm. Everything lies below `parent`, also images and
 * layers: buildah's usual storage is not touched.
 */
export async function startBuildah(parent: string, root: string): Promise<Engine> {
  const { buildah, makeBase, ...storage } = await openStorage(parent);
  /** A writable copy of an image's files: where the container runtime makes mount points. */
  const mounted = async (name: string): Promise<string> => {
    const container = (await buildah(['from', '--pull-never', name])).trim();
    return (await buildah(['mount', container])).trim();
  };
  await makeBase(buildImage, await buildBase(parent));
  await makeBase(runtimeImage, await runtimeBase(parent));
  const limitsMemory = await canLimitMemory();
  const npmCache = await npmConfig('cache');
  await mkdir(npmCache, { recursive: true });
  const secrets = await npmSettings();
  return {
    name: 'buildah, on base images made of this machine’s Node.js and npm',
    limitsMemory,
    baseFiles: async () => filesBelow(await mounted(runtimeImage)),
    async obstacle(target) {
      if (target !== debianTarget) return undefined;
      const there = await runTool('mmdebstrap', ['--version']).then(
        () => true,
        () => false,
      );
      return there ? undefined : 'mmdebstrap is missing, which makes its base image';
    },
    async build(target) {
      const name = `localhost/image-test/${target}`;
      if (target === debianTarget) await makeBase(debianImage, await debianBase(parent));
      const bases = [
        '--build-arg',
        `DEBIAN_IMAGE=${debianImage}`,
        '--build-arg',
        `BUILD_IMAGE=${buildImage}`,
        '--build-arg',
        `RUNTIME_IMAGE=${runtimeImage}`,
      ];
      const where = ['--volume', `${npmCache}:/root/.npm`, '--target', target, '--tag', name, root];
      await buildah(['build', '--quiet', '--pull-never', '--format', 'docker', ...secrets, ...bases, ...where]);
      const config = configOf(JSON.parse(await buildah(['inspect', '--type', 'image', name])) as Inspected);
      return {
        config,
        files: async () => filesBelow(await mounted(name)),
        start: async ({ memoryBytes, ...options }) =>
          startContainer(config, await mounted(name), {
            ...options,
            ...(limitsMemory && memoryBytes !== undefined && { memoryBytes }),
          }),
      } satisfies Image;
    },
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}

function configOf({ OCIv1, Docker }: Inspected): ImageConfig {
  const { User = '', Entrypoint = [], Env = [], Labels = {} } = OCIv1.config;
  const hasHealthcheck = Docker.config.Healthcheck !== undefined;
  return { user: User, entrypoint: Entrypoint, environment: Env, labels: Labels, hasHealthcheck };
}

async function startContainer(config: ImageConfig, folder: string, options: ContainerOptions): Promise<StartedProcess> {
  const { args, environment, memoryBytes, mounts, user } = options;
  for (const inside of Object.keys(mounts)) await mkdir(path.join(folder, inside), { recursive: true });
  const mountLines = Object.entries(mounts).map(([inside, outside]) => `${outside} ${inside}`);
  const namespace = ['--mount', '--propagation', 'private', 'sh', '-euc', containerScript, 'container'];
  const none = Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined]));
  const own = Object.fromEntries(config.environment.map((pair) => pair.split(/=(.*)/s, 2) as [string, string]));
  const cgroup = memoryBytes === undefined ? undefined : await makeMemoryCgroup(cgroupName(), memoryBytes);
  const started = await startProcess({
    program: 'unshare',
    args: [...namespace, folder, user, mountLines.join('\n'), cgroup?.procs ?? '', ...config.entrypoint, ...args],
    env: { ...none, ...own, ...environment, PATH: process.env['PATH'] },
  });
  if (cgroup !== undefined) void removeAtEnd(started, cgroup);
  return started;
}

const cgroupName = (): string => `image-test-${randomUUID()}`;

async function canLimitMemory(): Promise<boolean> {
  try {
    await using _made = await makeMemoryCgroup(cgroupName(), 2 ** 28);
    return true;
  } catch {
    return false;
  }
}

async function removeAtEnd(started: StartedProcess, cgroup: MemoryCgroup): Promise<void> {
  await started.ending();
  try {
    await cgroup[Symbol.asyncDispose]();
  } catch (error) {
    console.error(`A memory cgroup stays behind: ${String(error)}`);
  }
}

async function filesBelow(folder: string): Promise<Map<string, number>> {
  const files = new Map<string, number>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const { size } = await lstat(file);
    files.set(file.slice(folder.length), entry.isFile() ? size : 0);
  }
  return files;
}

const hierarchy = '/sys/fs/cgroup';

/** A memory cgroup; disposing removes it, for which its processes must have ended. */
interface MemoryCgroup extends AsyncDisposable {
  /** The file that a process writes its id to, to join. */
  readonly procs: string;
}

/**
 * Makes a memory cgroup of version 1 or 2, whichever this machine has.
 *
 * @throws where this process has no permission to make one.
 */
async function makeMemoryCgroup(name: string, limitBytes: number): Promise<MemoryCgroup> {
  const isVersion1 = existsSync(path.join(hierarchy, 'memory'));
  if (!isVersion1) await writeFile(path.join(hierarchy, 'cgroup.subtree_control'), '+memory');
  const folder = path.join(hierarchy, isVersion1 ? 'memory' : '', name);
  await mkdir(folder);
  const remove = (): Promise<void> => rmdir(folder);
  try {
    await writeFile(path.join(folder, isVersion1 ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes));
  } catch (error) {
    await remove();
    throw error;
  }
  return { procs: path.join(folder, 'cgroup.procs'), [Symbol.asyncDispose]: remove };
}
