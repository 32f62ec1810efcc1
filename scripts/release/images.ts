import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type BuildahStorage, openStorage } from '../image/buildah-storage.ts';
import { ownArchitecture } from '../image/local-base.ts';
import { npmConfig, npmSettings } from '../image/npm-settings.ts';
import { runTool } from '../image/run-tool.ts';
import { writeArchive } from './archive.ts';
import { type Bases, localBases, registryBases } from './base-images.ts';
import { billSummary } from './programs.ts';
import { type Release, root } from './release-of.ts';

/** Images by the names that they are published under, with the Dockerfile's targets and the files of their bills of materials. */
const images: Readonly<Record<string, { readonly target: string; readonly bill: string }>> = {
  'csi-provisioner': { target: 'sidecar', bill: 'csi-provisioner.cdx.json' },
  'nfs-subdir-external-provisioner': { target: 'nfs-subdir', bill: 'nfs-subdir-external-provisioner.cdx.json' },
  'nfs-provisioner': { target: 'nfs-provisioner', bill: 'nfs-provisioner.cdx.json' },
  'csi-provisioner-hostpath-driver': { target: 'hostpath-driver', bill: 'hostpath-driver.cdx.json' },
};

export interface ImageOptions {
  /** Whether base images are made here instead of pulled. */
  readonly local: boolean;
  /** As in `linux/ARCHITECTURE`. */
  readonly architectures: readonly string[];
}

/** Builds every image for every architecture by buildah: an OCI archive with all of them, and a bill of materials for each. */
export async function addImages(release: Release, parent: string, options: ImageOptions): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const obstacle = await noBuildah(options.local);
  if (obstacle !== undefined) {
    release.missing.push(`images: ${obstacle}`);
    return;
  }
  const storage = cleanup.use(await openStorage(parent, 'overlay'));
  const bases = options.local ? localBases(storage, parent, release.epoch) : registryBases(storage);
  if (options.local)
    release.missing.push('images are on stand-ins of their base images (--local-bases), not on those of the registry');
  const context = await exportedTree(release, parent);
  const architectures: string[] = [];
  for (const architecture of options.architectures) {
    const reason = await cannotRun(architecture, options.local);
    if (reason === undefined) architectures.push(architecture);
    else release.missing.push(`images for ${architecture}: ${reason}`);
  }
  const builder: Builder = { release, storage, bases, context, parent, npmCache: await npmConfig('cache') };
  await mkdir(builder.npmCache, { recursive: true });
  for (const name of Object.keys(images)) await addImage(builder, name, architectures);
  await writeFile(path.join(release.output, 'base-images.json'), `${JSON.stringify(bases.used(), null, 2)}\n`);
}

interface Builder {
  readonly release: Release;
  readonly storage: BuildahStorage;
  readonly bases: Bases;
  readonly context: string;
  readonly parent: string;
  readonly npmCache: string;
}

async function noBuildah(local: boolean): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'buildah needs root here';
  for (const tool of local ? ['buildah', 'mmdebstrap'] : ['buildah', 'skopeo']) {
    if (!(await works(tool, ['--version']))) return `${tool} is missing`;
  }
  return undefined;
}

async function works(program: string, args: readonly string[]): Promise<boolean> {
  return await runTool(program, args).then(
    () => true,
    () => false,
  );
}

/** The files of the commit, so that nothing else gets into an image, with the modes that git has. */
async function exportedTree({ commit }: Release, parent: string): Promise<string> {
  const context = await mkdtemp(path.join(parent, 'context-'));
  await chmod(context, 0o755);
  const archive = path.join(parent, 'commit.tar');
  await runTool('git', ['-C', root, '-c', 'tar.umask=0022', 'archive', '--output', archive, commit]);
  await runTool('tar', ['--extract', '--file', archive, '--directory', context]);
  await rm(archive);
  return context;
}

const emulators: Readonly<Record<string, string>> = { amd64: 'qemu-x86_64', arm64: 'qemu-aarch64' };

/**
 * Why programs of an architecture cannot run here: an image's own Node.js makes parts of it.
 *
 * @param local - whether base images are made here, by `mmdebstrap`, which asks `arch-test`.
 */
async function cannotRun(architecture: string, local: boolean): Promise<string | undefined> {
  if (architecture === ownArchitecture) return undefined;
  const emulator = emulators[architecture];
  if (emulator === undefined) return 'there are no such base images';
  const registered = await readFile(`/proc/sys/fs/binfmt_misc/${emulator}`, 'utf8').catch(() => '');
  const isRun = registered.startsWith('enabled') && (!local || (await works('arch-test', [architecture])));
  return isRun
    ? undefined
    : `this machine does not run its programs: apt-get install qemu-user-static binfmt-support arch-test`;
}

async function addImage(builder: Builder, name: string, architectures: readonly string[]): Promise<void> {
  const { release, storage, parent } = builder;
  const { bill } = images[name] ?? { bill: '' };
  const list = `localhost/release/${name}`;
  await storage.buildah(['manifest', 'create', list]);
  for (const architecture of architectures) {
    console.log(`Building the image ${name} for ${architecture}`);
    const image = await buildImage(builder, name, architecture);
    await storage.buildah(['manifest', 'add', list, image]);
    const listed = await copyBill(builder, image, {
      bill,
      file: `${name}-${release.version}-${architecture}.cdx.json`,
    });
    console.log(`  ${listed}`);
  }
  const folder = path.join(parent, name);
  await storage.buildah([
    'manifest',
    'push',
    '--quiet',
    '--all',
    '--format',
    'oci',
    list,
    `oci:${folder}:${release.version}`,
  ]);
  const file = path.join(release.output, `${name}-${release.version}.oci.tar`);
  await writeArchive(file, { folder, paths: ['blobs', 'index.json', 'oci-layout'], epoch: release.epoch });
  await rm(folder, { recursive: true });
}

/** @returns the name of the image in the storage. */
async function buildImage(builder: Builder, name: string, architecture: string): Promise<string> {
  const { release, storage, bases, context, npmCache } = builder;
  const image = `localhost/release/${name}:${architecture}`;
  const target = images[name]?.target ?? '';
  const settings = {
    ...(await bases.for(target, architecture)),
    BUILDPLATFORM: `linux/${ownArchitecture}`,
    TARGETPLATFORM: `linux/${architecture}`,
    VERSION: release.version,
    REVISION: release.commit,
    SOURCE_DATE_EPOCH: String(release.epoch),
  };
  await storage.buildah([
    ...['build', '--quiet', '--layers', '--format', 'oci', '--timestamp', String(release.epoch)],
    ...['--platform', `linux/${architecture}`, ...bases.flags, ...(await npmSettings())],
    ...Object.entries(settings).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]),
    ...['--volume', `${npmCache}:/root/.npm`, '--target', target, '--tag', image, context],
  ]);
  return image;
}

/** @returns what it lists, in words. */
async function copyBill(
  { release, storage }: Builder,
  image: string,
  { bill, file }: { bill: string; file: string },
): Promise<string> {
  const container = (await storage.buildah(['from', '--pull-never', image])).trim();
  const mounted = (await storage.buildah(['mount', container])).trim();
  const target = path.join(release.output, file);
  await writeFile(target, await readFile(path.join(mounted, bill)));
  await storage.buildah(['rm', container]);
  return await billSummary(target);
}
